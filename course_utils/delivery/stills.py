"""What a saved notebook keeps of a live control: the still picture and the text, not the live view.

A live view is a number that only the kernel which made it understands. Reopened with a new kernel, JupyterLab finds
no model for it and shows an error in the picture's place. So a server of ours leaves the view out as it saves (lab.py
writes that into the server's settings), and so do recorded runs. Running the cell brings the live control back.
"""

VIEW = "application/vnd.jupyter.widget-view+json"


def keep_stills(notebook: dict) -> None:
    """Take live views that have something else to show, and all widget state, out of `notebook`, in place.

    `notebook` is one as nbformat 4 stores it: a dict or a NotebookNode.
    """
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if len(output.get("data", {})) > 1:
                output["data"].pop(VIEW, None)
    notebook["metadata"].pop("widgets", None)


def before_saving(model: dict, **_: object) -> None:
    """Jupyter Server's pre_save_hook: `model` is what is about to be saved, a notebook or any other file."""
    notebook = model.get("content")
    if model.get("type") == "notebook" and isinstance(notebook, dict) and notebook.get("nbformat") == 4:
        keep_stills(notebook)
