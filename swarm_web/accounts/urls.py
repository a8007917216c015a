"""Addresses of the account pages, besides those of allauth."""

from django.urls import path

from swarm_web.accounts import views

urlpatterns = [
    path("", views.account, name="account"),
]
