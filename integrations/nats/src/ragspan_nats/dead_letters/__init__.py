"""Records that the fleet could not score: what they are, and how they come back."""
