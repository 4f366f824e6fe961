//! Bytes that are not a message give an error with the reason.

use proptest::prelude::*;
use verbs_roce::mad::{CmAttribute, CmMad, IpCm, MAD, MadError, PrivateData, attribute};

use crate::arbitrary::{config, mads};

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..=300)) {
        let read = CmMad::read(&bytes);
        prop_assert_eq!(attribute(&bytes), read.ok().map(|mad| mad.message.attribute()));
        prop_assert_eq!(IpCm::read(&bytes).is_ok(), bytes.len() >= 36 && matches!(bytes[1] >> 4, 4 | 6));
    }

    /// With the right header any data are a message.
    #[test]
    fn any_data_are_a_message(mad in mads(), data in proptest::collection::vec(any::<u8>(), MAD - 24)) {
        let mut bytes = mad.write();
        bytes[24..].copy_from_slice(&data);
        let read = CmMad::read(&bytes).unwrap();
        prop_assert_eq!(CmMad::read(&read.write()).unwrap(), read);
    }

    #[test]
    fn other_headers_are_told(mad in mads(), byte in 0..4usize, other in any::<u8>()) {
        let mut bytes = mad.write();
        prop_assume!(bytes[byte] != other);
        bytes[byte] = other;
        let error = [MadError::BaseVersion, MadError::Class, MadError::ClassVersion, MadError::Method][byte];
        prop_assert_eq!(CmMad::read(&bytes), Err(error(other)));
        prop_assert_eq!(attribute(&bytes), None);
    }

    #[test]
    fn other_lengths_are_told(mad in mads(), length in 0..300usize) {
        prop_assume!(length != MAD);
        let mut bytes = mad.write().to_vec();
        bytes.resize(length, 0);
        prop_assert_eq!(CmMad::read(&bytes), Err(MadError::Length(length)));
        prop_assert_eq!(attribute(&bytes), None);
    }
}

#[test]
fn unknown_attributes_are_told() {
    let mut bytes = [0; MAD];
    bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
    for raw in 0..=u16::MAX {
        bytes[16..18].copy_from_slice(&raw.to_be_bytes());
        let known = CmAttribute::from_u16(raw);
        assert_eq!(known.is_some(), (0x10..=0x18).contains(&raw));
        assert_eq!(attribute(&bytes), known);
        match known {
            Some(known) => assert_eq!(known as u16, raw),
            None => assert_eq!(CmMad::read(&bytes), Err(MadError::Attribute(raw))),
        }
    }
}

#[test]
fn attributes_have_the_names_of_the_standard() {
    let names: Vec<_> = CmAttribute::ALL
        .iter()
        .map(|attribute| attribute.to_string())
        .collect();
    let expected = [
        "REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP",
    ];
    assert_eq!(names, expected);
}

#[test]
fn too_much_private_data_are_refused() {
    let full = PrivateData::<3>::new(b"abc").unwrap();
    assert_eq!(*full, *b"abc");
    assert_eq!(*PrivateData::<3>::new(b"a").unwrap(), *b"a\0\0");
    let error = PrivateData::<3>::new(b"abcd").unwrap_err();
    assert_eq!(error, MadError::PrivateData { length: 4, room: 3 });
    assert_eq!(
        error.to_string(),
        "4 bytes of private data, but there is room for 3"
    );
}

#[test]
fn private_data_are_shown_without_the_zeros_behind() {
    let shown = |data| format!("{:?}", PrivateData::<92>::new(data).unwrap());
    assert_eq!(shown(b"\x00\x0a\xff\x00"), "PrivateData<92>(000aff)");
    assert_eq!(shown(b""), "PrivateData<92>()");
}

#[test]
fn errors_say_what_was_found() {
    let shown = |error: MadError| error.to_string();
    assert_eq!(shown(MadError::Length(255)), "255 bytes");
    assert_eq!(shown(MadError::BaseVersion(2)), "MAD of version 2, not 1");
    assert_eq!(shown(MadError::Class(3)), "MAD of class 0x03, not 0x07");
    assert_eq!(shown(MadError::ClassVersion(1)), "CM of version 1, not 2");
    assert_eq!(shown(MadError::Method(0x81)), "CM method 0x81, not 0x03");
    assert_eq!(
        shown(MadError::Attribute(0x19)),
        "CM attribute 0x0019 is unknown"
    );
    assert_eq!(shown(MadError::IpVersion(5)), "IP version 5");
}
