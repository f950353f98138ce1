"""Previews of images, rotated according to EXIF and scaled down to what models accept."""

import io
from typing import TYPE_CHECKING

from handtools.core.errors import TooLarge, WrongKind
from handtools.core.media import MediaPreview
from handtools.core.result import Image
from handtools.host.media import UNREADABLE_HINT

if TYPE_CHECKING:
    from PIL import Image as Pictures

MAX_IMAGE_EDGE_PIXELS = 1568
"""The longest edge of an image in pixels; models scale larger images down, but still charge for them."""
MAX_IMAGE_BYTES = 3_700_000
"""The largest image in bytes; as base64, it stays below 5 MB."""
MAX_IMAGE_PIXELS = 100_000_000
_MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
_ORIENTATION = 0x0112
_SMALLER = "Read a smaller copy of the image."


def preview(path: str, data: bytes) -> MediaPreview:
    """Decode an image and scale it down if it is too large."""
    from PIL import Image as Pictures
    from PIL import UnidentifiedImageError

    try:
        with Pictures.open(io.BytesIO(data)) as picture:
            width, height, shape = *picture.size, picture.format or "image"
            if width * height > MAX_IMAGE_PIXELS:
                message = f"`{path}` has {width} x {height} pixels; the limit is {MAX_IMAGE_PIXELS:,}."
                raise TooLarge(message, hint=_SMALLER)
            turned = picture.getexif().get(_ORIENTATION, 1) != 1
            small = max(width, height) <= MAX_IMAGE_EDGE_PIXELS and len(data) <= MAX_IMAGE_BYTES
            title = f"{shape} image, {width} x {height} pixels"
            if shape in _MEDIA_TYPES and small and not turned:
                return MediaPreview(kind="image", title=title, images=(Image(data, _MEDIA_TYPES[shape]),))
            image, shown = encoded_image(picture)
    except Pictures.DecompressionBombError as error:
        message = f"`{path}` has too many pixels; the limit is {MAX_IMAGE_PIXELS:,}."
        raise TooLarge(message, hint=_SMALLER) from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        message = f"`{path}` looks like an image but can't be read: {error}."
        raise WrongKind(message, hint=UNREADABLE_HINT) from error
    note = "" if shown == (width, height) else f", shown at {shown[0]} x {shown[1]}"
    return MediaPreview(kind="image", title=title + note, images=(image,))


def encoded_image(picture: "Pictures.Image") -> tuple[Image, tuple[int, int]]:
    """Encode a picture as PNG or JPEG, whichever is smaller; returns it with its width and height."""
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(picture)
    upright.thumbnail((MAX_IMAGE_EDGE_PIXELS, MAX_IMAGE_EDGE_PIXELS))
    solid = upright.convert(
        "RGBA" if "A" in upright.getbands() or "transparency" in upright.info else "RGB"
    )
    while True:
        best = _smallest_encoded_image(solid)
        if len(best.data) <= MAX_IMAGE_BYTES:
            return best, solid.size
        solid = solid.reduce(2)


def _smallest_encoded_image(picture: "Pictures.Image") -> Image:
    png, jpeg = io.BytesIO(), io.BytesIO()
    picture.save(png, "PNG", optimize=True)
    if picture.mode == "RGBA":
        return Image(png.getvalue(), "image/png")
    picture.save(jpeg, "JPEG", quality=85)
    if len(jpeg.getvalue()) < len(png.getvalue()):
        return Image(jpeg.getvalue(), "image/jpeg")
    return Image(png.getvalue(), "image/png")
