//! SMS text: encoding and billed parts (GSM 03.38).
