"""One step of each cell and one step back: the equations that the fused engine runs.

`dv` stands for `∂E/∂v`. With the pre-activation `a_t = W x_t + U h_{t-1} + b`, a step sends back

    dx_t = W^T da_t
        dh_{t-1} = U^T da_t + (whatever else of the step sees h_{t-1})

and the weights collect from all steps

    dW = Σ_t da_t x_t^T
    dU = Σ_t da_t h_{t-1}^T
    db = Σ_t da_t

so that only `da_t` and `dh_{t-1}` need a loop over time; each class below says what they are. To
this a loss that sees `h_t` itself, as an output, adds its own share of `dh_t`.

A step back is linear in the errors. What it multiplies them by, the derivatives `F` of the step,
is known from the way forward, and computed for many steps at once.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import tensorflow as tf

ACTIVATIONS = {
    # name: the function φ, and φ' in terms of φ's value
    "tanh": (tf.tanh, lambda h: 1 - h * h),
    "sigmoid": (tf.sigmoid, lambda h: h * (1 - h)),
    "relu": (tf.nn.relu, lambda h: tf.cast(h > 0, h.dtype)),
    "linear": (tf.identity, tf.ones_like),
}


class Weights(NamedTuple):
    """Weights as a cell's equations want them."""

    W: tf.Tensor  # [features, gates·units]
    Us: tuple[tf.Tensor, ...]  # matrices that multiply the previous output, [units, ·]
    vectors: tuple[tf.Tensor, ...]  # biases and peepholes


class Equations:
    """What the equations of a cell are made of; a subclass holds those of one cell.

    `drop` stands for recurrent dropout, and is applied to the previous output where it meets `U`.
    """

    saved: ClassVar[tuple[int, ...]] = ()  # sizes, in units, of what `step` saves for `factors`
    errors: ClassVar[
        tuple[int, ...]
    ] = ()  # sizes, in units, of the errors that `step_back` leaves for `collect`
    bias_rows: ClassVar[
        tuple[int, ...]
    ] = ()  # axes of the Keras layer's bias before that of the columns

    def arrange(self, W, U, bias, peephole) -> Weights:
        """Returns the weights of the Keras layer as the equations want them."""
        raise NotImplementedError

    def unpacked(self) -> "Equations":
        """Returns the equations that take the weights as the Keras layer has them, if they can."""
        return self

    def step(self, x, before, weights, drop) -> tuple:
        """Returns the states of step t and what is saved; `x` is `W x_t`, `before` the states."""
        raise NotImplementedError

    def factors(self, before, after, saved, drop) -> tuple:
        """Returns what `step_back` multiplies errors by, `[steps, batch, units]` each."""
        raise NotImplementedError

    def step_back(self, dafter, factors, weights, drop) -> tuple:
        """Returns the errors for `collect`, `da_t` the first of them, and those of the states of
        step t-1; the factors are those of step t, and `weights.Us` are transposed."""
        raise NotImplementedError

    def collect(self, errors, before, after, saved, drop) -> tuple:
        """Returns the gradients of `Us` and of `vectors` from the errors of many steps."""
        raise NotImplementedError


@dataclass(frozen=True)
class Elman(Equations):
    """The cell of Elman, `h_t = φ(a_t)`, and back:

        F = φ'(a_t)
        da_t = dh_t ⊙ F
        dh_{t-1} = U^T da_t

    φ' is computed from the value of φ, so that nothing but the state is saved.
    """

    activation: str = "tanh"
    errors = (1,)

    def arrange(self, W, U, bias, peephole):
        return Weights(W, (U,), (bias,))

    def step(self, x, before, weights, drop):
        (h,), (U,), (b,) = before, weights.Us, weights.vectors
        activation, _ = ACTIVATIONS[self.activation]
        return (activation(x + drop(h) @ U + b),), ()

    def factors(self, before, after, saved, drop):
        (h,) = after
        _, slope = ACTIVATIONS[self.activation]
        return (slope(h),)

    def step_back(self, dafter, factors, weights, drop):
        (dh,), (F,), (U_T,) = dafter, factors, weights.Us
        da = dh * F
        return (da,), (drop(da @ U_T),)

    def collect(self, errors, before, after, saved, drop):
        (da,) = errors
        return (outer_product(drop(before[0]), da),), (_over_steps(da),)


@dataclass(frozen=True)
class LSTM(Equations):
    """Long short-term memory, its equations as in `LSTMCell`, and back:

        F_o = tanh(c_t) ⊙ o_t ⊙ (1 - o_t),  F_c = o_t ⊙ (1 - tanh²(c_t))
        F_i = g_t ⊙ i_t ⊙ (1 - i_t),  F_f = c_{t-1} ⊙ f_t ⊙ (1 - f_t),  F_g = i_t ⊙ (1 - g_t²)
        da^o_t = dh_t ⊙ F_o
        dc_t  += dh_t ⊙ F_c + p_o ⊙ da^o_t
        da^i_t = dc_t ⊙ F_i,  da^f_t = dc_t ⊙ F_f,  da^g_t = dc_t ⊙ F_g
        dc_{t-1} = dc_t ⊙ f_t + p_i ⊙ da^i_t + p_f ⊙ da^f_t
        dh_{t-1} = U^T da_t
        dp_i = Σ_t da^i_t ⊙ c_{t-1},  dp_f = Σ_t da^f_t ⊙ c_{t-1},  dp_o = Σ_t da^o_t ⊙ c_t

    Packed, the columns are put in the order i, f, o, g: one logistic function over three gates.
    """

    peephole: bool = False
    packed: bool = True
    saved = (3, 1)
    errors = (4,)

    def unpacked(self):
        return LSTM(self.peephole, packed=False)

    def arrange(self, W, U, bias, peephole):
        if self.packed:
            W, U, bias = (_move_output_gate(w) for w in (W, U, bias))
        peepholes = tuple(tf.split(peephole, 3)) if self.peephole else ()
        return Weights(W, (U,), (bias, *peepholes))

    def step(self, x, before, weights, drop):
        (h, c), (U,), (b, *peepholes) = before, weights.Us, weights.vectors
        a = x + drop(h) @ U + b
        if self.packed and not self.peephole:
            ifo = tf.sigmoid(a[:, : 3 * h.shape[1]])
            i, f, o = tf.split(ifo, 3, axis=1)  # [batch, units] each
            g = tf.tanh(a[:, 3 * h.shape[1] :])
            c = f * c + i * g
            return (o * tf.tanh(c), c), (ifo, g)
        a_i, a_f, *a_og = tf.split(a, 4, axis=1)  # [batch, units] each
        a_o, a_g = a_og if self.packed else reversed(a_og)
        if self.peephole:
            p_i, p_f, p_o = peepholes
            a_i, a_f = a_i + p_i * c, a_f + p_f * c
        i, f, g = tf.sigmoid(a_i), tf.sigmoid(a_f), tf.tanh(a_g)
        c = f * c + i * g
        o = tf.sigmoid(a_o + p_o * c if self.peephole else a_o)
        return (o * tf.tanh(c), c), (tf.concat([i, f, o], axis=1), g)  # [batch, 3·units]

    def factors(self, before, after, saved, drop):
        (_, c_before), (_, c), (ifo, g) = before, after, saved
        i, f, o = tf.split(ifo, 3, axis=2)  # [steps, batch, units] each
        tanh_c = tf.tanh(c)
        F_i, F_f, F_g = g * i * (1 - i), c_before * f * (1 - f), i * (1 - g * g)
        F_o, F_c = tanh_c * o * (1 - o), o * (1 - tanh_c * tanh_c)
        return F_i, F_f, F_o, F_g, F_c, f

    def step_back(self, dafter, factors, weights, drop):
        (dh, dc), (F_i, F_f, F_o, F_g, F_c, f), (U_T,) = dafter, factors, weights.Us
        da_o = dh * F_o
        dc = dc + dh * F_c
        if self.peephole:
            _, p_i, p_f, p_o = weights.vectors
            dc = dc + p_o * da_o
        da_i, da_f, da_g = dc * F_i, dc * F_f, dc * F_g
        dc = dc * f
        if self.peephole:
            dc = dc + p_i * da_i + p_f * da_f
        da = tf.concat([da_i, da_f, da_o, da_g], axis=1)  # [batch, 4·units]
        return (da,), (drop(da @ U_T), dc)

    def collect(self, errors, before, after, saved, drop):
        (da,), (h_before, c_before), (_, c) = errors, before, after
        vectors = [_over_steps(da)]
        if self.peephole:
            da_i, da_f, da_o, _ = tf.split(da, 4, axis=2)  # [steps, batch, units] each
            vectors += [_over_steps(d * s) for d, s in ((da_i, c_before), (da_f, c_before))]
            vectors += [_over_steps(da_o * c)]
        return (outer_product(drop(h_before), da),), tuple(vectors)


@dataclass(frozen=True)
class GRU(Equations):
    """Gated recurrent unit that resets before the product, as in `GRUCell`, and back:

        F_u = (h_{t-1} - h̃_t) ⊙ u_t ⊙ (1 - u_t),  F_h = (1 - u_t) ⊙ (1 - h̃_t²)
        F_r = h_{t-1} ⊙ r_t ⊙ (1 - r_t)
        da^u_t = dh_t ⊙ F_u,  da^h_t = dh_t ⊙ F_h
        dq_t = U_h^T da^h_t,  where q_t = r_t ⊙ h_{t-1}
        da^r_t = dq_t ⊙ F_r
        dh_{t-1} = dh_t ⊙ u_t + dq_t ⊙ r_t + U_u^T da^u_t + U_r^T da^r_t
        dU_h = Σ_t da^h_t q_t^T

    U is in two parts, since U_h waits for the reset gate.
    """

    saved = (2, 1)
    errors = (3,)

    def arrange(self, W, U, bias, peephole):
        units = U.shape[0]
        return Weights(W, (U[:, : 2 * units], U[:, 2 * units :]), (bias,))

    def step(self, x, before, weights, drop):
        (h,), (U_ur, U_h), (b,) = before, weights.Us, weights.vectors
        a = x + b
        gates = 2 * h.shape[1]
        ur = tf.sigmoid(a[:, :gates] + drop(h) @ U_ur)
        u, r = tf.split(ur, 2, axis=1)  # [batch, units] each
        candidate = tf.tanh(a[:, gates:] + (r * drop(h)) @ U_h)
        return (u * h + (1 - u) * candidate,), (ur, candidate)

    def factors(self, before, after, saved, drop):
        (h,), (ur, candidate) = before, saved
        u, r = tf.split(ur, 2, axis=2)  # [steps, batch, units] each
        F_u, F_h = (h - candidate) * u * (1 - u), (1 - u) * (1 - candidate * candidate)
        return F_u, drop(h) * r * (1 - r), F_h, u, r

    def step_back(self, dafter, factors, weights, drop):
        (dh,), (F_u, F_r, F_h, u, r), (U_ur_T, U_h_T) = dafter, factors, weights.Us
        da_u, da_h = dh * F_u, dh * F_h
        dq = da_h @ U_h_T
        da_ur = tf.concat([da_u, dq * F_r], axis=1)  # [batch, 2·units]
        da = tf.concat([da_ur, da_h], axis=1)  # [batch, 3·units]
        return (da,), (dh * u + drop(dq * r + da_ur @ U_ur_T),)

    def collect(self, errors, before, after, saved, drop):
        (da,), h = errors, drop(before[0])
        _, r = tf.split(saved[0], 2, axis=2)  # [steps, batch, units] each
        gates = 2 * h.shape[2]
        return (outer_product(h, da[..., :gates]), outer_product(r * h, da[..., gates:])), (
            _over_steps(da),
        )


@dataclass(frozen=True)
class GRUResetAfter(Equations):
    """Gated recurrent unit that resets after the product, as in `GRUCell`, and back:

        F_u = (h_{t-1} - h̃_t) ⊙ u_t ⊙ (1 - u_t),  F_h = (1 - u_t) ⊙ (1 - h̃_t²)
        F_r = F_h ⊙ s_t ⊙ r_t ⊙ (1 - r_t),  where s_t = U_h h_{t-1} + b'_h
        da^u_t = dh_t ⊙ F_u,  da^r_t = dh_t ⊙ F_r,  da^h_t = dh_t ⊙ F_h
        ds_t = r_t ⊙ da^h_t
        dh_{t-1} = dh_t ⊙ u_t + U_u^T da^u_t + U_r^T da^r_t + U_h^T ds_t
        dU_h = Σ_t ds_t h_{t-1}^T,  db'_h = Σ_t ds_t

    For the two gates b and b' are one bias.
    """

    saved = (2, 1, 1)
    errors = (3, 3)
    bias_rows = (2,)

    def arrange(self, W, U, bias, peephole):
        gates = 2 * U.shape[0]
        b_ur = bias[0, :gates] + bias[1, :gates]
        return Weights(W, (U,), (b_ur, bias[0, gates:], bias[1, gates:]))

    def step(self, x, before, weights, drop):
        (h,), (U,), (b_ur, b_h, b_s) = before, weights.Us, weights.vectors
        gates = 2 * h.shape[1]
        s = drop(h) @ U  # [batch, 3·units]
        ur = tf.sigmoid(x[:, :gates] + s[:, :gates] + b_ur)
        u, r = tf.split(ur, 2, axis=1)  # [batch, units] each
        s = s[:, gates:] + b_s
        candidate = tf.tanh(x[:, gates:] + b_h + r * s)
        return (u * h + (1 - u) * candidate,), (ur, candidate, s)

    def factors(self, before, after, saved, drop):
        (h,), (ur, candidate, s) = before, saved
        u, r = tf.split(ur, 2, axis=2)  # [steps, batch, units] each
        F_u, F_h = (h - candidate) * u * (1 - u), (1 - u) * (1 - candidate * candidate)
        return F_u, F_h * s * r * (1 - r), F_h, u, r

    def step_back(self, dafter, factors, weights, drop):
        (dh,), (F_u, F_r, F_h, u, r), (U_T,) = dafter, factors, weights.Us
        da_u, da_r, da_h = dh * F_u, dh * F_r, dh * F_h
        da = tf.concat([da_u, da_r, da_h], axis=1)  # [batch, 3·units]
        ds = tf.concat([da_u, da_r, r * da_h], axis=1)  # [batch, 3·units]
        return (da, ds), (dh * u + drop(ds @ U_T),)

    def collect(self, errors, before, after, saved, drop):
        (da, ds), h = errors, drop(before[0])
        sizes = [2 * h.shape[2], h.shape[2]]
        (db_ur, db_h), (_, db_s) = (tf.split(_over_steps(v), sizes) for v in (da, ds))
        return (outer_product(h, ds),), (db_ur, db_h, db_s)


def _move_output_gate(w):
    i, f, g, o = tf.split(w, 4, axis=-1)
    return tf.concat([i, f, o, g], axis=-1)


def outer_product(rows, columns):
    """Returns the sum of `row column^T` over the steps and rows of a block."""
    rows, columns = (tf.reshape(v, [-1, v.shape[2]]) for v in (rows, columns))
    return tf.matmul(rows, columns, transpose_a=True)


def _over_steps(errors):
    return tf.reduce_sum(errors, axis=[0, 1])
