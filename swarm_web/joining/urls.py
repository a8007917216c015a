"""URLs of the device flow: two endpoints for clients, two pages for people."""

from django.urls import path

from swarm_web.joining import endpoints, pages

urlpatterns = [
    path("", pages.device, name="device"),
    path("code", endpoints.device_code, name="device-code"),
    path("token", endpoints.device_token, name="device-token"),
    path("approved/<slug:name>/", pages.approved, name="device-approved"),
]
