"""The verifier that asks Vectara's HHEM-2.1-Open, a small classifier that runs on this machine."""

from ragspan_hhem.verifier import HHEMVerifier

__all__ = ["HHEMVerifier"]
