"""The recurrent cells: one time step of each documented equation.

Letters: `W` multiplies the input, `U` the previous state, `V` the state for the output; `b` and `c`
are biases. Sequences are rows here, so that `W x` of the equations is `x @ W` in the code. The
gates' columns lie side by side in one matrix, in the order that stock Keras uses, so that weights
can be copied from its layers.
"""

import keras
from keras import ops

# Stock `keras.layers.RNN` draws and forgets the masks of cells of this class only, and it has no
# public name.
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell


class RecurrentCell(DropoutRNNCell, keras.layers.Layer):
    """What the recurrent cells have in common: weights, initial state, dropout, normalisation.

    A cell maps `(x_t, states_{t-1})` to `(h_t, states_t)`, and the first of its states is `h_t`.
    A subclass says how many `gates` it has and what its states are called in `values`, where it
    writes its equation in terms of `W x` and `U h` as the options below leave them.

    Dropout is variational (Gal & Ghahramani 2016): one mask for the input and one for the previous
    output, drawn for each row when a sequence starts and kept for all its steps and all gates. In
    a loop of one's own over a bare cell the masks stay until `reset_dropout_mask()` and
    `reset_recurrent_dropout_mask()`; the layers call both.
    `recurrent_weight_dropout` drops entries of `U` itself (DropConnect, Wan et al. 2013; in
    recurrent nets Merity et al. 2018): one draw a call, shared by the rows and the steps. What is
    kept is scaled up by 1 / (1 - rate), and nothing is dropped at inference.

    With `layer_norm` (Ba et al. 2016) the products enter the equations normalised over all gates
    together, each with a gain γ and a shift β of its own:

        LN(W x) + LN(U h) + b,    LN(a) = γ ⊙ (a - mean(a)) / sqrt(var(a) + 1e-5) + β

    Args:
        units: Size of the output and of each state.
        activation: The function φ of the equation. Default: `"tanh"`.
        use_bias: Whether there is a bias. Default: `True`.
        kernel_initializer: Initialiser of `W`, `kernel`. Default: `"glorot_uniform"`.
        recurrent_initializer: Initialiser of `U`, `recurrent_kernel`. Default: `"orthogonal"`.
        bias_initializer: Initialiser of `b`, `bias`. Default: `"zeros"`.
        kernel_regularizer: Penalty on `W`. Default: `None`.
        recurrent_regularizer: Penalty on `U`. Default: `None`.
        bias_regularizer: Penalty on `b`. Default: `None`.
        kernel_constraint: Constraint on `W`. Default: `None`.
        recurrent_constraint: Constraint on `U`. Default: `None`.
        bias_constraint: Constraint on `b`. Default: `None`.
        layer_norm: Whether `W x` and `U h` are normalised. Default: `False`.
        dropout: Share of the input's features that is dropped in training. Default: 0.
        recurrent_dropout: Share of the previous output's features that is dropped in training
            where it meets `U`. Default: 0.
        recurrent_weight_dropout: Share of the entries of `U` that is dropped in training.
            Default: 0.
        seed: Seed of the dropout masks. Default: `None`.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Raises:
        ValueError: If `units` is not positive or a dropout rate is not in [0, 1).
    """

    gates = 1
    state_letters: tuple[str, ...] = ("h",)

    def __init__(
        self,
        units: int,
        *,
        activation="tanh",
        use_bias: bool = True,
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        kernel_regularizer=None,
        recurrent_regularizer=None,
        bias_regularizer=None,
        kernel_constraint=None,
        recurrent_constraint=None,
        bias_constraint=None,
        layer_norm: bool = False,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        recurrent_weight_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        _check_positive("units", units)
        for name, rate in (
            ("dropout", dropout),
            ("recurrent_dropout", recurrent_dropout),
            ("recurrent_weight_dropout", recurrent_weight_dropout),
        ):
            if not 0 <= rate < 1:
                raise ValueError(f"`{name}` must be in [0, 1). Received: {name}={rate}")
        super().__init__(**kwargs)
        self.units = units
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = keras.regularizers.get(recurrent_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.recurrent_constraint = keras.constraints.get(recurrent_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.layer_norm = layer_norm
        self.dropout = dropout
        self.recurrent_dropout = recurrent_dropout
        self.recurrent_weight_dropout = recurrent_weight_dropout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.reset_dropout_mask()
        self.reset_recurrent_dropout_mask()
        self.state_size: int | list[int] = units
        self.output_size = units

    @property
    def bias_shape(self) -> tuple[int, ...]:
        """Shape of `bias`."""
        return (self.gates * self.units,)

    def build(self, input_shape):
        """Makes the weights for inputs of shape `[batch, features]`."""
        columns = self.gates * self.units
        self.kernel = self.add_weight(
            shape=(input_shape[-1], columns),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            name="kernel",
        )
        self.recurrent_kernel = self.add_weight(
            shape=(self.output_size, columns),
            initializer=self.recurrent_initializer,
            regularizer=self.recurrent_regularizer,
            constraint=self.recurrent_constraint,
            name="recurrent_kernel",
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=self.bias_shape,
                initializer=self._initial_bias,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                name="bias",
            )
        self.kernel_norm = self._add_norm("kernel", columns)
        self.recurrent_norm = self._add_norm("recurrent", columns)

    def _initial_bias(self, shape, dtype=None):
        return self.bias_initializer(shape, dtype=dtype)

    def _add_norm(self, name: str, size: int):
        """Makes the gain and the shift of one normalised vector, if there is to be one."""
        if not self.layer_norm:
            return None
        return (
            self.add_weight(shape=(size,), initializer="ones", name=f"{name}_gain"),
            self.add_weight(shape=(size,), initializer="zeros", name=f"{name}_shift"),
        )

    def _normalise(self, a, norm):
        if norm is None:
            return a
        gain, shift = norm
        return ops.layer_normalization(a, gain, shift, epsilon=1e-5)

    def _input_product(self, x, training):
        """Returns `W x`, `[batch, gates·units]`, as dropout and normalisation leave it."""
        if training and self.dropout > 0:
            x = x * self.get_dropout_mask(x)
        return self._normalise(ops.matmul(x, self.kernel), self.kernel_norm)

    def _state_product(self, h, training, columns: slice | None = None):
        """Returns `U h`, or its given columns, as dropout and normalisation leave it."""
        U, norm = self.recurrent_kernel, self.recurrent_norm
        if training and self.recurrent_dropout > 0:
            h = h * self.get_recurrent_dropout_mask(h)
        if training and self.recurrent_weight_dropout > 0:
            U = U * self.get_recurrent_weight_mask()
        if columns is not None:
            U = U[:, columns]
            norm = norm and [part[columns] for part in norm]
        return self._normalise(ops.matmul(h, U), norm)

    def _preactivation(self, x, h, training):
        """Returns `W x + U h + b`, `[batch, gates·units]`."""
        a = self._input_product(x, training) + self._state_product(h, training)
        return a + self.bias if self.use_bias else a

    def call(self, inputs, states, training=False):
        """Takes one step."""
        values = self.values(inputs, states, training)
        states = [values[letter] for letter in self.state_letters]
        return states[0], states

    def values(self, inputs, states, training=False) -> dict:
        """Takes one step and tells what every letter of the cell's equation is.

        Args:
            inputs: As for the call, and so are the others.
            states: As for the call.
            training: As for the call.

        Returns:
            The gates, the candidate and the states after the step by their letters,
            `[batch, units]` each.
        """
        raise NotImplementedError

    def get_recurrent_weight_mask(self):
        """Returns the mask of `U`, drawn if there is none; `None` if no entry is ever dropped."""
        if self._recurrent_weight_mask is None and self.recurrent_weight_dropout > 0:
            self._recurrent_weight_mask = keras.random.dropout(
                ops.ones(self.recurrent_kernel.shape, dtype=self.compute_dtype),
                self.recurrent_weight_dropout,
                seed=self.seed_generator,
            )
        return self._recurrent_weight_mask

    def get_recurrent_dropout_mask(self, step_input):
        """Returns the mask of the previous output, drawn if there is none."""
        # Stock RNN calls this ahead of its loop, and `U`'s mask must be older than the loop too.
        self.get_recurrent_weight_mask()
        return super().get_recurrent_dropout_mask(step_input)

    def reset_recurrent_dropout_mask(self):
        """Forgets the masks of the previous output and of `U`."""
        super().reset_recurrent_dropout_mask()
        self._recurrent_weight_mask = None

    def get_initial_state(self, batch_size=None) -> list:
        """Returns the states before the first step: zeros, `[batch, units]` each."""
        sizes = [self.state_size] if isinstance(self.state_size, int) else self.state_size
        return [ops.zeros((batch_size, size), dtype=self.compute_dtype) for size in sizes]

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "units": self.units,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "recurrent_initializer": keras.initializers.serialize(self.recurrent_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "recurrent_regularizer": keras.regularizers.serialize(self.recurrent_regularizer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
            "kernel_constraint": keras.constraints.serialize(self.kernel_constraint),
            "recurrent_constraint": keras.constraints.serialize(self.recurrent_constraint),
            "bias_constraint": keras.constraints.serialize(self.bias_constraint),
            "layer_norm": self.layer_norm,
            "dropout": self.dropout,
            "recurrent_dropout": self.recurrent_dropout,
            "recurrent_weight_dropout": self.recurrent_weight_dropout,
            "seed": self.seed,
        }


def _check_positive(name: str, size: int):
    if size <= 0:
        raise ValueError(f"`{name}` must be positive. Received: {name}={size}")


@keras.saving.register_keras_serializable(package="rnnapps")
class ElmanCell(RecurrentCell):
    """The simple recurrent cell of Elman (1990).

        h_t = φ(W x_t + U h_{t-1} + b),    h_0 = 0

    φ is tanh; `activation="sigmoid"` is the cell of Mikolov et al. (2010). The IRNN of Le et al.
    (2015) is `activation="relu"` with `recurrent_initializer="identity"`: it starts as a memory
    that adds up its inputs and loses nothing.

    Args:
        units: Size of the output and of the state.
        **kwargs: The arguments of `RecurrentCell`.

    Call arguments:
        inputs: Float tensor `x_t`, `[batch, features]`.
        states: List of one tensor `h_{t-1}`, `[batch, units]`.
        training: Whether dropout is active. Default: `False`.

    Returns:
        `h_t`, `[batch, units]`, and the list `[h_t]`.

    Example:

    >>> cell = ElmanCell(4, activation="relu", recurrent_initializer="identity")
    >>> output, states = cell(keras.ops.ones((2, 3)), cell.get_initial_state(2))
    >>> tuple(output.shape), len(states)
    ((2, 4), 1)
    """

    def values(self, inputs, states, training=False) -> dict:
        """Takes one step; returns h."""
        (h,) = states
        return {"h": self.activation(self._preactivation(inputs, h, training))}  # [batch, units]


@keras.saving.register_keras_serializable(package="rnnapps")
class JordanCell(RecurrentCell):
    """The recurrent cell of Jordan (1986), which feeds its output back.

        h_t = φ(W x_t + U y_{t-1} + b),    y_0 = 0
        y_t = ψ(V h_t + c)

    Its output and its one state are y. `U`, `recurrent_kernel`, is `[output_units, units]`; `V`,
    `output_kernel`, is `[units, output_units]` and is regularised and constrained as `W` is; `c`,
    `output_bias`, goes the way of `b`. With `layer_norm` `W x` and `U y` are normalised, `V h` is
    not.

    Args:
        units: Size of the hidden layer h.
        output_units: Size of the output and of the state y.
        output_activation: The function ψ of the output, for example `"softmax"` over a vocabulary.
            Default: `"sigmoid"`.
        output_initializer: Initialiser of `V`. Default: `"glorot_uniform"`.
        **kwargs: The arguments of `RecurrentCell`.

    Call arguments:
        inputs: Float tensor `x_t`, `[batch, features]`.
        states: List of one tensor `y_{t-1}`, `[batch, output_units]`.
        training: Whether dropout is active. Default: `False`.

    Returns:
        `y_t`, `[batch, output_units]`, and the list `[y_t]`.

    Raises:
        ValueError: If `output_units` is not positive.

    Example:

    >>> cell = JordanCell(4, 2)
    >>> output, (y,) = cell(keras.ops.ones((5, 3)), cell.get_initial_state(5))
    >>> tuple(output.shape), tuple(cell.recurrent_kernel.shape)
    ((5, 2), (2, 4))
    """

    state_letters = ("y",)

    def __init__(
        self,
        units: int,
        output_units: int,
        *,
        output_activation="sigmoid",
        output_initializer="glorot_uniform",
        **kwargs,
    ):
        _check_positive("output_units", output_units)
        super().__init__(units, **kwargs)
        self.output_units = output_units
        self.output_activation = keras.activations.get(output_activation)
        self.output_initializer = keras.initializers.get(output_initializer)
        self.state_size = output_units
        self.output_size = output_units

    def build(self, input_shape):
        """Makes the weights for inputs of shape `[batch, features]`."""
        super().build(input_shape)
        self.output_kernel = self.add_weight(
            shape=(self.units, self.output_units),
            initializer=self.output_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            name="output_kernel",
        )
        self.output_bias = None
        if self.use_bias:
            self.output_bias = self.add_weight(
                shape=(self.output_units,),
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                name="output_bias",
            )

    def values(self, inputs, states, training=False) -> dict:
        """Takes one step; returns h and y."""
        (y,) = states
        h = self.activation(self._preactivation(inputs, y, training))  # [batch, units]
        y = ops.matmul(h, self.output_kernel)  # [batch, output_units]
        if self.use_bias:
            y = y + self.output_bias
        return {"h": h, "y": self.output_activation(y)}

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "output_units": self.output_units,
            "output_activation": keras.activations.serialize(self.output_activation),
            "output_initializer": keras.initializers.serialize(self.output_initializer),
        }


@keras.saving.register_keras_serializable(package="rnnapps")
class LSTMCell(RecurrentCell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997; forget gate Gers et al. 2000).

        i_t = σ(W_i x_t + U_i h_{t-1} + b_i)
        f_t = σ(W_f x_t + U_f h_{t-1} + b_f)
        g_t = φ(W_g x_t + U_g h_{t-1} + b_g)
        o_t = σ(W_o x_t + U_o h_{t-1} + b_o)
        c_t = f_t ⊙ c_{t-1} + i_t ⊙ g_t
        h_t = o_t ⊙ φ(c_t)

    With `peephole` the gates see the cell too (Gers & Schmidhuber 2000; Graves 2012):

        i_t = σ(… + p_i ⊙ c_{t-1}),    f_t = σ(… + p_f ⊙ c_{t-1}),    o_t = σ(… + p_o ⊙ c_t)

    With `layer_norm` `W x` and `U h` are normalised as in `RecurrentCell`, and the cell where it is
    read out: h_t = o_t ⊙ φ(LN(c_t)).

    The weights hold the gates in the order i, f, g, o, and `peephole_kernel` i, f, o.

    Args:
        units: Size of the output and of the two states.
        recurrent_activation: The function σ of the gates. Default: `"sigmoid"`.
        unit_forget_bias: Where `b_f` starts, instead of `bias_initializer` (Jozefowicz et al.
            2015): a number, where stock Keras has a flag (its `True` is 1). Default: 1.
        peephole: Whether the gates see the cell. Default: `False`.
        peephole_initializer: Initialiser of p, `peephole_kernel`, `[3·units]`. Default: `"zeros"`.
        **kwargs: The arguments of `RecurrentCell`.

    Call arguments:
        inputs: Float tensor `x_t`, `[batch, features]`.
        states: List of the tensors `h_{t-1}` and `c_{t-1}`, `[batch, units]` each.
        training: Whether dropout is active. Default: `False`.

    Returns:
        `h_t`, `[batch, units]`, and the list `[h_t, c_t]`.

    Example:

    >>> cell = LSTMCell(4, unit_forget_bias=2.0, peephole=True)
    >>> output, (h, c) = cell(keras.ops.ones((2, 3)), cell.get_initial_state(2))
    >>> tuple(output.shape), tuple(c.shape)
    ((2, 4), (2, 4))
    """

    gates = 4
    state_letters = ("h", "c")

    def __init__(
        self,
        units: int,
        *,
        recurrent_activation="sigmoid",
        unit_forget_bias: float = 1.0,
        peephole: bool = False,
        peephole_initializer="zeros",
        **kwargs,
    ):
        super().__init__(units, **kwargs)
        self.recurrent_activation = keras.activations.get(recurrent_activation)
        self.unit_forget_bias = float(unit_forget_bias)
        self.peephole = peephole
        self.peephole_initializer = keras.initializers.get(peephole_initializer)
        self.state_size = [units, units]

    def build(self, input_shape):
        """Makes the weights for inputs of shape `[batch, features]`."""
        super().build(input_shape)
        if self.peephole:
            self.peephole_kernel = self.add_weight(
                shape=(3 * self.units,),
                initializer=self.peephole_initializer,
                name="peephole_kernel",
            )
        self.cell_norm = self._add_norm("cell", self.units)

    def _initial_bias(self, shape, dtype=None):
        i, f, g, o = ops.split(super()._initial_bias(shape, dtype), 4)  # [units] each
        f = ops.full_like(f, self.unit_forget_bias)
        return ops.concatenate([i, f, g, o])  # [4·units]

    def values(self, inputs, states, training=False) -> dict:
        """Takes one step; returns i, f, g, o, c and h."""
        h, c = states
        a = self._preactivation(inputs, h, training)  # [batch, 4·units]
        i, f, g, o = ops.split(a, 4, axis=-1)  # [batch, units] each
        if self.peephole:
            p_i, p_f, p_o = ops.split(self.peephole_kernel, 3)  # [units] each
            i, f = i + p_i * c, f + p_f * c
        i, f = self.recurrent_activation(i), self.recurrent_activation(f)
        g = self.activation(g)
        c = f * c + i * g
        if self.peephole:
            o = o + p_o * c
        o = self.recurrent_activation(o)
        h = o * self.activation(self._normalise(c, self.cell_norm))
        return {"i": i, "f": f, "g": g, "o": o, "c": c, "h": h}

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "recurrent_activation": keras.activations.serialize(self.recurrent_activation),
            "unit_forget_bias": self.unit_forget_bias,
            "peephole": self.peephole,
            "peephole_initializer": keras.initializers.serialize(self.peephole_initializer),
        }


@keras.saving.register_keras_serializable(package="rnnapps")
class GRUCell(RecurrentCell):
    """Gated recurrent unit (Cho et al. 2014).

        u_t = σ(W_u x_t + U_u h_{t-1} + b_u)
        r_t = σ(W_r x_t + U_r h_{t-1} + b_r)
        h̃_t = φ(W_h x_t + U_h (r_t ⊙ h_{t-1}) + b_h)
        h_t = u_t ⊙ h_{t-1} + (1 - u_t) ⊙ h̃_t

    The update gate u keeps the old state. With `reset_after` the reset gate acts on the product, as
    in cuDNN's kernel, and there is a bias b' beside `U` too:

        h̃_t = φ(W_h x_t + b_h + r_t ⊙ (U_h h_{t-1} + b'_h))

    The weights hold the gates in the order u (stock Keras calls it z), r, h; with `reset_after` the
    rows of `bias` are b and b'.

    With `layer_norm` W x is normalised over its three parts together, and so is U h with
    `reset_after`. Otherwise U acts in two products, since U_h waits for r: [U_u h, U_r h] and
    U_h (r ⊙ h) are normalised one by one, with the parts of the one gain and shift that are theirs.

    Args:
        units: Size of the output and of the state.
        recurrent_activation: The function σ of the gates. Default: `"sigmoid"`.
        reset_after: Whether the reset gate acts after the matrix product. Default: `False`.
        **kwargs: The arguments of `RecurrentCell`.

    Call arguments:
        inputs: Float tensor `x_t`, `[batch, features]`.
        states: List of one tensor `h_{t-1}`, `[batch, units]`.
        training: Whether dropout is active. Default: `False`.

    Returns:
        `h_t`, `[batch, units]`, and the list `[h_t]`.

    Example:

    >>> cell = GRUCell(4)
    >>> output, states = cell(keras.ops.ones((2, 3)), cell.get_initial_state(2))
    >>> tuple(output.shape), len(states)
    ((2, 4), 1)
    """

    gates = 3

    def __init__(
        self, units: int, *, recurrent_activation="sigmoid", reset_after: bool = False, **kwargs
    ):
        super().__init__(units, **kwargs)
        self.recurrent_activation = keras.activations.get(recurrent_activation)
        self.reset_after = reset_after

    @property
    def bias_shape(self) -> tuple[int, ...]:
        """Shape of `bias`: a second row for the recurrent product with `reset_after`."""
        (columns,) = super().bias_shape
        return (2, columns) if self.reset_after else (columns,)

    def values(self, inputs, states, training=False) -> dict:
        """Takes one step; returns u, r, h̃ and h."""
        (h,) = states
        a = self._input_product(inputs, training)  # [batch, 3·units]
        if self.use_bias:
            a = a + (self.bias[0] if self.reset_after else self.bias)
        a_u, a_r, a_h = ops.split(a, 3, axis=-1)  # [batch, units] each
        if self.reset_after:
            s = self._state_product(h, training)  # [batch, 3·units]
            if self.use_bias:
                s = s + self.bias[1]
            s_u, s_r, s_h = ops.split(s, 3, axis=-1)  # [batch, units] each
            r = self.recurrent_activation(a_r + s_r)
            s_h = r * s_h
        else:
            gates, last = slice(2 * self.units), slice(2 * self.units, None)
            s_u, s_r = ops.split(self._state_product(h, training, gates), 2, axis=-1)
            r = self.recurrent_activation(a_r + s_r)
            s_h = self._state_product(r * h, training, last)  # [batch, units]
        u = self.recurrent_activation(a_u + s_u)
        candidate = self.activation(a_h + s_h)
        return {"u": u, "r": r, "h̃": candidate, "h": u * h + (1 - u) * candidate}

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "recurrent_activation": keras.activations.serialize(self.recurrent_activation),
            "reset_after": self.reset_after,
        }
