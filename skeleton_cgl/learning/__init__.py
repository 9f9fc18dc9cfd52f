"""The learner: batches, optimizer, recipe, early stopping, state."""
