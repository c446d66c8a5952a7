"""What goes on inside recurrent layers, as arrays: gates, gradients, what a unit keeps track of."""
