"""Decoding in graph: tokens one after another, over any step function.

A step reads the last token of each row and scores what may come next:

    logits, state = step(tokens, state)

- `tokens`: int32 `[batch]`;
- `state`: any nest of tensors with the batch first, of the same shapes and types before and after;
  `()` where there is none;
- `logits`: float `[batch, vocabulary]`, of which the vocabulary's size is known when traced.

Decoding starts from the last token of each row (of its prompt, or the one that begins a sequence)
and the state before that token was read, so that as many steps are taken as tokens are decoded.

What holds for all functions here: the loop is in the graph, for any batch, also of no rows, and
ends when every row has ended. What has ended is frozen: it gives padding, id 0, and nothing is
added to its length or log-probability. Of tokens with the same logit the lower id comes first. A
forbidden token never comes out, and neither does one with the logit -inf or NaN as long as there
is another.
"""

from rnnapps.decoding.beams import Hypotheses, beam_search
from rnnapps.decoding.sampling import Decoded, greedy, sample
from rnnapps.decoding.steps import PADDING, Step

__all__ = ["PADDING", "Decoded", "Hypotheses", "Step", "beam_search", "greedy", "sample"]
