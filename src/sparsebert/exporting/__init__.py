"""A model as one file that other programs run: ONNX, torch.export, or compiled code.

model -> graph (any batch, any length, its pattern inside) -> formats -> file
"""

from sparsebert.exporting.formats import FORMATS, Exported, export, export_embedder

__all__ = ["FORMATS", "Exported", "export", "export_embedder"]
