"""What a reader of metrics has measured."""

from __future__ import annotations


def points_of(reader, metric):
    """The data points of this metric."""
    data = reader.get_metrics_data()
    return [
        point
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for found in scope.metrics
        if found.name == metric
        for point in found.data.data_points
    ]
