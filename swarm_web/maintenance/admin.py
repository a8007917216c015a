"""Admin of maintenances."""

from django.contrib import admin

from swarm_web.maintenance.models import Maintenance


@admin.register(Maintenance)
class MaintenanceAdmin(admin.ModelAdmin[Maintenance]):
    """Lists maintenances with their times."""

    list_display = ("__str__", "starts_at", "ends_at")
