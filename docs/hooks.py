"""Pages of the site besides docs/*.md: the readme, the notebook, and the API from docstrings."""

import base64
import json
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "fedsampling"
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)")


# Pages of the public API: title, modules. The samplers have a page for each module.
REFERENCE = {
    "base_classes": (
        "Base classes of samplers",
        [
            "samplers.users.one_run",
            "samplers.users.run_view",
            "samplers.protocol.base",
            "samplers.protocol.slots",
            "samplers.protocol.draws",
        ],
    ),
    "checks": ("Checks of samplers", ["samplers.checks.check"]),
    "partitions": ("Partitions", ["data.partitions", "data.federated"]),
    "statistics": ("Statistics", ["evidence.statistics"]),
    "theory": ("Closed forms", ["theory.weights", "theory.improvement", "theory.heterogeneity"]),
    "adapters": ("Adapters", ["adapters.flower", "adapters.pfl"]),
}


def on_files(files, config):
    """Add the pages that are generated from other files."""
    pages = {"index.md": (ROOT / "README.md").read_text("utf-8").replace("](docs/", "](")}
    pages["tutorial.md"], pictures = notebook(ROOT / "docs" / "tutorial.ipynb")
    pages["api/index.md"] = functions()
    # 100 columns of code fit a window of 1400 pixels.
    pages["wide.css"] = ".md-grid { max-width: 88rem; }"
    titles = {f"api/{page}.md": title for page, (title, _) in REFERENCE.items()}
    for page, (title, parts) in REFERENCE.items():
        directives = [f"::: fedsampling.{module}" for module in parts]
        pages[f"api/{page}.md"] = "\n\n".join([f"# {title}", *directives])
    for name in sampler_modules():
        options = "options: {show_root_heading: false}"
        pages[f"api/samplers/{name}.md"] = (
            f"# {name} {{ #fedsampling.samplers.{name} }}\n\n"
            f"::: fedsampling.samplers.{name}\n    {options}"
        )
    reference = next(group["Reference"] for group in config.nav if "Reference" in group)
    reference += [
        {"Functions": "api/index.md"},
        *({title: page} for page, title in titles.items()),
        {"Samplers": [{name: f"api/samplers/{name}.md"} for name in sampler_modules()]},
    ]
    for name, content in (pages | pictures).items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    """Redirect links to pages of the site.

    A link to a module becomes a link to its docstrings; a link to another file of the repository
    becomes the file's name.  Broken links stay unchanged, so that the build fails on them.
    """
    folder = Path("README.md" if page.url == "" else f"docs/{page.file.src_path}").parent

    def redirected(match):
        text, link, _ = match.groups()
        target = (ROOT / folder / link).resolve()
        if link.endswith("tutorial.ipynb"):
            return f"[{text}](tutorial.md)"
        if target.is_relative_to(PACKAGE) and target.is_file():
            module = ".".join(target.relative_to(PACKAGE).with_suffix("").parts)
            page = api_page(module)
            return f"[{text}]({page}#fedsampling.{module})" if page else text
        if not target.is_relative_to(ROOT / "docs") and target.exists():
            name = target.relative_to(ROOT).as_posix()
            return text if name in text or name.startswith("papers/") else f"{text} (`{name}`)"
        return match[0]

    return markdown if page.file.src_path.startswith("api/") else _LINK.sub(redirected, markdown)


def api_page(module):
    """Return the page of a module's docstrings, or None if the module is internal."""
    if module.removeprefix("samplers.") in sampler_modules():
        return f"api/{module.replace('.', '/')}.md"
    return next(
        (f"api/{name}.md" for name, (_, parts) in REFERENCE.items() if module in parts), None
    )


def notebook(path):
    """Convert a notebook to a page; return the page, and its pictures by name."""
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
                parts.append(f"![Output of the cell above]({name})")
            else:
                text = "".join(output.get("text", data.get("text/plain", ""))).rstrip()
                parts.append(f"```text\n{text}\n```")
    return "\n\n".join(parts), pictures


def functions():
    """Return a page with the public names of `import fedsampling`."""
    text = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    names = re.findall(r'^    "(\w+)": "([\w.]+)",$', text, re.M)
    shown = {module for _, modules in REFERENCE.values() for module in modules}
    return "\n\n".join(
        [
            "# Functions",
            "::: fedsampling\n    options: {heading_level: 2, members: false}",
            *(
                f"::: fedsampling.{module}.{name}\n    options: {{heading_level: 2}}"
                for name, module in names
                if module not in shown
            ),
        ]
    )


def sampler_modules():
    """Return the names of the modules of samplers."""
    names = sorted(path.stem for path in (PACKAGE / "samplers").glob("*.py"))
    return [name for name in names if name != "__init__"]
