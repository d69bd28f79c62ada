from fedsampling.data.sources.sources import SOURCES, VERIFIED, editions


def test_every_source_has_the_fields_for_fetching_and_citing():
    for name, source in SOURCES.items():
        assert source.name == name
        assert source.urls or source.page, name
        assert source.licence, name
        assert source.citation.endswith("."), name
        assert source.becomes, name


def test_no_source_claims_more_verification_than_it_has():
    for name, source in SOURCES.items():
        assert source.verified in VERIFIED
        assert (source.checksum is None) == (source.verified == "content"), name
        # Over plain http anyone on the way may change a file: a checksum makes that harmless.
        assert source.checksum or all(url.startswith("https://") for url in source.urls), name
        assert not source.published or source.verified in ("publisher", "others"), name


def test_editions_come_in_order_of_preference():
    assert [*editions("cifar10")] == ["binary", "sheets"]
