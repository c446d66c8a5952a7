"""The recurrent cells: one time step of each documented equation.

Letters: `W` multiplies the input, `U` the previous state, `b` is the bias. Sequences are rows here,
so that `W x` of the equations is `x @ W` in the code. The gates' columns lie side by side in one
matrix, in the order that stock Keras uses, so that weights can be copied from its layers.
"""

import keras
from keras import ops

# Stock `keras.layers.RNN` draws and forgets the masks of cells of this class only, and it has no
# public name.
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell


class RecurrentCell(DropoutRNNCell, keras.layers.Layer):
    """What the recurrent cells have in common: weights, initial state and dropout.

    A cell maps `(x_t, states_{t-1})` to `(h_t, states_t)`, and the first of its states is `h_t`.
    Dropout is variational (Gal & Ghahramani 2016): one mask for the input and one for the previous
    output, drawn for each row when a sequence starts and kept for all its steps and all gates.
    A subclass says how many `gates` it has and writes its equation in `call`.

    Args:
        units: Size of the output and of each state.
        activation: The function φ of the equation. Default: `"tanh"`.
        use_bias: Whether there is a bias. Default: `True`.
        kernel_initializer: Initialiser of `W`, `kernel`. Default: `"glorot_uniform"`.
        recurrent_initializer: Initialiser of `U`, `recurrent_kernel`. Default: `"orthogonal"`.
        bias_initializer: Initialiser of `b`, `bias`. Default: `"zeros"`.
        dropout: Share of the input's features that is dropped in training. Default: 0.
        recurrent_dropout: Share of the previous output's features that is dropped in training
            where it meets `U`. Default: 0.
        seed: Seed of the dropout masks. Default: `None`.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Raises:
        ValueError: If `units` is not positive or a dropout rate is not in [0, 1).
    """

    gates = 1

    def __init__(
        self,
        units: int,
        *,
        activation="tanh",
        use_bias: bool = True,
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        if units <= 0:
            raise ValueError(f"`units` must be positive. Received: units={units}")
        for name, rate in (("dropout", dropout), ("recurrent_dropout", recurrent_dropout)):
            if not 0 <= rate < 1:
                raise ValueError(f"`{name}` must be in [0, 1). Received: {name}={rate}")
        super().__init__(**kwargs)
        self.units = units
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.dropout = dropout
        self.recurrent_dropout = recurrent_dropout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.state_size = units
        self.output_size = units

    @property
    def bias_shape(self) -> tuple[int, ...]:
        """Shape of `bias`."""
        return (self.gates * self.units,)

    def build(self, input_shape):
        """Makes the weights for inputs of shape `[batch, features]`."""
        columns = self.gates * self.units
        self.kernel = self.add_weight(
            shape=(input_shape[-1], columns), initializer=self.kernel_initializer, name="kernel"
        )
        self.recurrent_kernel = self.add_weight(
            shape=(self.units, columns),
            initializer=self.recurrent_initializer,
            name="recurrent_kernel",
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=self.bias_shape, initializer=self._initial_bias, name="bias"
            )

    def _initial_bias(self, shape, dtype=None):
        return self.bias_initializer(shape, dtype=dtype)

    def _drop(self, x, h, training):
        """Returns the input and the previous output as the matrices are to see them."""
        if training and self.dropout > 0:
            x = x * self.get_dropout_mask(x)
        if training and self.recurrent_dropout > 0:
            h = h * self.get_recurrent_dropout_mask(h)
        return x, h

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
            "dropout": self.dropout,
            "recurrent_dropout": self.recurrent_dropout,
            "seed": self.seed,
        }


@keras.saving.register_keras_serializable(package="rnnapps")
class ElmanCell(RecurrentCell):
    """The simple recurrent cell of Elman (1990).

        h_t = φ(W x_t + U h_{t-1} + b)

    φ is tanh; `activation="sigmoid"` is the cell of Mikolov et al. (2010), and `"relu"` with
    `recurrent_initializer="identity"` the IRNN of Le et al. (2015).

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

    >>> cell = ElmanCell(4)
    >>> output, states = cell(keras.ops.ones((2, 3)), cell.get_initial_state(2))
    >>> output.shape, len(states)
    (TensorShape([2, 4]), 1)
    """

    def call(self, inputs, states, training=False):
        """Takes one step."""
        (h,) = states
        x, h = self._drop(inputs, h, training)
        a = ops.matmul(x, self.kernel) + ops.matmul(h, self.recurrent_kernel)
        if self.use_bias:
            a = a + self.bias
        h = self.activation(a)  # [batch, units]
        return h, [h]


@keras.saving.register_keras_serializable(package="rnnapps")
class LSTMCell(RecurrentCell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997; forget gate Gers et al. 2000).

        i_t = σ(W_i x_t + U_i h_{t-1} + b_i)
        f_t = σ(W_f x_t + U_f h_{t-1} + b_f)
        g_t = φ(W_g x_t + U_g h_{t-1} + b_g)
        o_t = σ(W_o x_t + U_o h_{t-1} + b_o)
        c_t = f_t ⊙ c_{t-1} + i_t ⊙ g_t
        h_t = o_t ⊙ φ(c_t)

    The weights hold the gates in the order i, f, g, o.

    Args:
        units: Size of the output and of the two states.
        recurrent_activation: The function σ of the gates. Default: `"sigmoid"`.
        unit_forget_bias: Where `b_f` starts, instead of `bias_initializer` (Jozefowicz et al.
            2015). Default: 1.
        **kwargs: The arguments of `RecurrentCell`.

    Call arguments:
        inputs: Float tensor `x_t`, `[batch, features]`.
        states: List of the tensors `h_{t-1}` and `c_{t-1}`, `[batch, units]` each.
        training: Whether dropout is active. Default: `False`.

    Returns:
        `h_t`, `[batch, units]`, and the list `[h_t, c_t]`.

    Example:

    >>> cell = LSTMCell(4, unit_forget_bias=2.0)
    >>> output, (h, c) = cell(keras.ops.ones((2, 3)), cell.get_initial_state(2))
    >>> output.shape, c.shape
    (TensorShape([2, 4]), TensorShape([2, 4]))
    """

    gates = 4

    def __init__(
        self, units: int, *, recurrent_activation="sigmoid", unit_forget_bias: float = 1.0, **kwargs
    ):
        super().__init__(units, **kwargs)
        self.recurrent_activation = keras.activations.get(recurrent_activation)
        self.unit_forget_bias = float(unit_forget_bias)
        self.state_size = [units, units]

    def _initial_bias(self, shape, dtype=None):
        i, f, g, o = ops.split(super()._initial_bias(shape, dtype), 4)  # [units] each
        f = ops.full_like(f, self.unit_forget_bias)
        return ops.concatenate([i, f, g, o])  # [4·units]

    def call(self, inputs, states, training=False):
        """Takes one step."""
        h, c = states
        x, h = self._drop(inputs, h, training)
        a = ops.matmul(x, self.kernel) + ops.matmul(h, self.recurrent_kernel)
        if self.use_bias:
            a = a + self.bias
        i, f, g, o = ops.split(a, 4, axis=-1)  # [batch, units] each
        i, f, o = (self.recurrent_activation(gate) for gate in (i, f, o))
        c = f * c + i * self.activation(g)
        h = o * self.activation(c)
        return h, [h, c]

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "recurrent_activation": keras.activations.serialize(self.recurrent_activation),
            "unit_forget_bias": self.unit_forget_bias,
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
    >>> output.shape, len(states)
    (TensorShape([2, 4]), 1)
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

    def call(self, inputs, states, training=False):
        """Takes one step."""
        (h,) = states
        x, dropped = self._drop(inputs, h, training)
        a = ops.matmul(x, self.kernel)  # [batch, 3·units]
        if self.use_bias:
            a = a + (self.bias[0] if self.reset_after else self.bias)
        a_u, a_r, a_h = ops.split(a, 3, axis=-1)  # [batch, units] each
        if self.reset_after:
            s = ops.matmul(dropped, self.recurrent_kernel)  # [batch, 3·units]
            if self.use_bias:
                s = s + self.bias[1]
            s_u, s_r, s_h = ops.split(s, 3, axis=-1)  # [batch, units] each
            r = self.recurrent_activation(a_r + s_r)
            s_h = r * s_h
        else:
            gates_kernel = self.recurrent_kernel[:, : 2 * self.units]
            s_u, s_r = ops.split(ops.matmul(dropped, gates_kernel), 2, axis=-1)
            r = self.recurrent_activation(a_r + s_r)
            s_h = ops.matmul(r * dropped, self.recurrent_kernel[:, 2 * self.units :])
        u = self.recurrent_activation(a_u + s_u)
        h = u * h + (1 - u) * self.activation(a_h + s_h)
        return h, [h]

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "recurrent_activation": keras.activations.serialize(self.recurrent_activation),
            "reset_after": self.reset_after,
        }
