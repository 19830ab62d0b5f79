from ragspan import Score


def test_a_score_without_a_label_is_its_value_in_four_digits(make):
    (annotation,) = make.annotations(make.scored({"faithfulness": Score(value=0.008316752663251097)}))

    assert make.assessment(annotation)["feedback"] == {"value": 0.0083}


def test_the_same_score_in_another_process_and_on_another_span_has_the_same_id(make):
    ids = {make.assessment(make.feedback(value, span=span))["assessment_id"] for value, span in ((0.9, 1), (0.3, 2))}

    assert ids == {"a-7bae8825e4c65d6ab111c643ddca23b9"}  # at most 50 characters, which is what MLflow's column has
