"""What the site has beside docs/*.md: the readme, the notebook, and pages of the docstrings."""

import base64
import json
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "fedsampling"
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)")


def on_files(files, config):
    """Add the pages that are made of other files."""
    rooms = re.findall(
        r"^\| `(\w+)` \| (.*?) \|", (ROOT / "docs/architecture.md").read_text("utf-8"), re.M
    )
    pages = {"index.md": (ROOT / "README.md").read_text("utf-8").replace("](docs/", "](")}
    pages["tutorial.md"], pictures = notebook(ROOT / "docs" / "tutorial.ipynb")
    pages["api/index.md"] = api_index(rooms)
    for room, what in rooms:
        pages[f"api/{room}.md"] = f"# `{room}`\n\n{what}\n\n" + "\n\n".join(
            f"::: {module}" for module in modules(room)
        )
    config.nav[1]["As a library"][-1:] = [
        {"API": ["api/index.md", *({room: f"api/{room}.md"} for room, _ in rooms)]}
    ]
    for name, content in (pages | pictures).items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    """Point links at the site's own pages; what the site lacks is named as a file.

    A link to a module leads to its docstrings.  A link that leads nowhere stays as it is, and the
    build fails on it.
    """
    here = Path("README.md" if page.url == "" else f"docs/{page.file.src_path}").parent

    def mended(found):
        text, link, _ = found.groups()
        target = (ROOT / here / link).resolve()
        if link.endswith("tutorial.ipynb"):
            return f"[{text}](tutorial.md)"
        if target.is_relative_to(PACKAGE) and target.is_file():
            module = ".".join(target.relative_to(ROOT / "src").with_suffix("").parts)
            return f"[{text}](api/{module.split('.')[1]}.md#{module})"
        if not target.is_relative_to(ROOT / "docs") and target.exists():
            name = target.relative_to(ROOT).as_posix()
            return text if name in text else f"{text} (`{name}`)"
        return found[0]

    return markdown if page.file.src_path.startswith("api/") else _LINK.sub(mended, markdown)


def notebook(path):
    """Return a notebook as a page, and its pictures."""
    parts, pictures = [], {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"tutorial-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode("".join(data["image/png"]))
                parts.append(f"![What the cell above draws]({name})")
            else:
                shown = "".join(output.get("text", data.get("text/plain", ""))).rstrip()
                parts.append(f"```text\n{shown}\n```")
    return "\n\n".join(parts), pictures


def api_index(rooms):
    """Return the page of what `import fedsampling` offers, and the list of rooms."""
    text = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    offered = re.findall(r'^    "(\w+)": "([\w.]+)",$', text, re.M)
    return "\n\n".join(
        [
            "# API",
            "::: fedsampling\n    options: {heading_level: 2, members: false}",
            "In full: "
            + ", ".join(f"[`{name}`][fedsampling.{module}.{name}]" for name, module in offered)
            + ".",
            "## Rooms",
            "\n".join(f"- [`{room}`]({room}.md): {what}" for room, what in rooms),
        ]
    )


def modules(room):
    """Name the modules of a room."""
    if (PACKAGE / f"{room}.py").is_file():
        return [f"fedsampling.{room}"]
    found = sorted((PACKAGE / room).rglob("*.py"))
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in found]
    return [name for name in names if not name.endswith("__init__")]
