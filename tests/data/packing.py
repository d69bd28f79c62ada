"""Archives of a few small files."""

import io
import tarfile
import zipfile


def pack(path, files):
    """Pack contents by name into a .zip, a .tar or a compressed .tar."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    else:
        mode = path.suffix[1:] if path.suffix != ".tar" else ""
        with tarfile.open(path, f"w:{mode}") as archive:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path
