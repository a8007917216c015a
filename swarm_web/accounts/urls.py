"""Addresses of the account pages, besides those of allauth."""

from django.urls import path

from swarm_web.accounts.views import leaving, nodes

urlpatterns = [
    path("", nodes.account, name="account"),
    path("nodes/", nodes.create, name="account-create-node"),
    path("nodes/<slug:name>/", nodes.manage, name="account-node"),
    path("nodes/<slug:name>/token/", nodes.rotate, name="account-rotate-token"),
    path("nodes/<slug:name>/revoke/", nodes.revoke, name="account-revoke-token"),
    path("data/", leaving.data, name="account-data"),
    path("data/export.json", leaving.export, name="account-export"),
    path("delete/", leaving.delete, name="account-delete"),
]
