from handtools.text.lines import SplicedText


def test_a_spliced_text_has_the_new_stretch_in_the_place_of_the_old():
    spliced = SplicedText("one two three", 4, 7, "2")
    assert spliced.full_text == "one 2 three"
    assert len(spliced) == len("one 2 three")


def test_what_is_replaced_by_itself_is_the_same():
    assert SplicedText("one two", 4, 7, "two").is_unchanged
    assert not SplicedText("one two", 4, 7, "").is_unchanged
