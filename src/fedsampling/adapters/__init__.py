"""The schemes in other frameworks: whom to ask and how to weigh, where somebody else trains."""
