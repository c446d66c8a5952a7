"""How well sentences are translated, by how long they are."""

from collections.abc import Mapping

from matplotlib.figure import Figure


def bleu_by_length(groups: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draws BLEU over the length of the source, a line for each model.

    Args:
        groups: for each model, BLEU by the name of the lengths of a group, from short to long; the
            groups are the same for all.
    """
    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, of_model in groups.items():
        axes.plot(list(of_model), list(of_model.values()), "o-", label=name)
    highest = max((score for of_model in groups.values() for score in of_model.values()), default=0)
    axes.set(xlabel="tokens of the source", ylabel="BLEU", ylim=(0, 1.1 * highest or 1))
    axes.legend(loc="lower left")
    return figure
