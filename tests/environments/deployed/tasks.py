"""A Celery worker that gives itself its tasks."""

import celery
from answers import answered

app = celery.Celery(
    "tasks",
    broker="filesystem://",
    broker_transport_options={"data_folder_in": "broker", "data_folder_out": "broker", "control_folder": "control"},
)


@app.task(name="give")
def give(name):
    answered(name)


@celery.signals.worker_ready.connect
def send(**_):
    for number in range(400):
        give.delay(str(number))
