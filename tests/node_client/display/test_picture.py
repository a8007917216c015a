"""The picture of the panel in the README."""

import pytest

from tests.node_client.panel_views import full_view
from tests.node_client.picture import PICTURE, draw


@pytest.mark.parametrize("source", ["drawn", "stored"])
def test_picture_loads_no_external_resource(source: str) -> None:
    svg = draw(full_view()) if source == "drawn" else PICTURE.read_text()
    assert "@font-face" not in svg
    assert "@import" not in svg
    assert "url(http" not in svg
    assert "is&#160;healthy" in svg
