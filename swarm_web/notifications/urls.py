"""Addresses under /account/notifications/."""

from django.urls import path

from swarm_web.notifications import views

urlpatterns = [
    path("", views.notifications, name="notifications"),
    path("<int:pk>/", views.channel, name="notification-channel"),
    path("<int:pk>/test/", views.test, name="notification-test"),
    path("<int:pk>/secret/", views.secret, name="notification-secret"),
    path("<int:pk>/switch/", views.switch, name="notification-switch"),
    path("<int:pk>/delete/", views.delete, name="notification-delete"),
    path("unsubscribe/<str:token>/", views.unsubscribe, name="unsubscribe"),
]
