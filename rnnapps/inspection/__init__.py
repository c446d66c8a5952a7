"""What goes on in a model, as arrays: gates, gradients, what a unit tracks, what a word moves."""
