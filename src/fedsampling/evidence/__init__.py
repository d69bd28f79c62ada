"""Evidence: summaries with intervals, comparisons, and what they amount to."""
