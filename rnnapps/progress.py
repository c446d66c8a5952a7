"""How far a training run has come, what it has measured, and when it is over."""

import dataclasses

# A dev metric must be better by so much for the learning rate to stay, but not to be the best.
_NOTABLE = 1e-4


@dataclasses.dataclass
class Progress:
    """The course of a run in plain values, which a checkpoint keeps.

    The best epoch, when to stop and when to let the learning rate decay are decided as Keras'
    `ModelCheckpoint`, `EarlyStopping` and `ReduceLROnPlateau` do.

    Attributes:
        epoch: How many epochs are complete.
        step: How many steps have been taken since.
        history: The values of each complete epoch by name.
        best: The best value of the monitored metric, None before the first.
        best_epoch: The epoch it is from, counted from 0; -1 before the first.
        plateau: The value that the learning rate's decay compares with.
        plateau_epochs: Epochs since `plateau`, or since the learning rate decayed.
        seconds: Time spent on the run up to here.
        epoch_seconds: Time spent on the steps of the epoch that has been begun.
    """

    epoch: int = 0
    step: int = 0
    history: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    best: float | None = None
    best_epoch: int = -1
    plateau: float | None = None
    plateau_epochs: int = 0
    seconds: float = 0.0
    epoch_seconds: float = 0.0

    def complete_epoch(self, values: dict[str, float], monitor: str, mode: str) -> None:
        """Records the values of an epoch, of which `monitor` chooses the best by `mode`."""
        for name, value in values.items():
            self.history.setdefault(name, []).append(value)
        sign = 1 if mode == "max" else -1
        score = sign * values[monitor]
        if self.best is None or score > sign * self.best:
            self.best, self.best_epoch = values[monitor], self.epoch
        if self.plateau is None or score > sign * self.plateau + _NOTABLE:
            self.plateau, self.plateau_epochs = values[monitor], 0
        else:
            self.plateau_epochs += 1
        self.epoch, self.step, self.epoch_seconds = self.epoch + 1, 0, 0.0

    @property
    def is_best(self) -> bool:
        """Whether the last complete epoch is the best so far."""
        return self.epoch > 0 and self.best_epoch == self.epoch - 1

    def leading(self, number: int, monitor: str, mode: str) -> list[int]:
        """Returns which complete epochs have the best values of `monitor`, in order of time."""
        sign = 1 if mode == "max" else -1
        scores = self.history.get(monitor, [])
        ranked = sorted(range(len(scores)), key=lambda epoch: (-sign * scores[epoch], epoch))
        return sorted(ranked[:number])

    def takes_decay(self, patience: int) -> bool:
        """Whether the learning rate is to decay now; the waiting then begins anew."""
        due = 0 < self.plateau_epochs >= patience
        if due:
            self.plateau_epochs = 0
        return due

    def is_over(self, epochs: int, patience: int) -> bool:
        """Whether no further epoch is to be trained."""
        if self.epoch >= epochs:
            return True
        waited = self.epoch - 1 - self.best_epoch
        return self.epoch > 1 and waited > 0 and waited >= patience
