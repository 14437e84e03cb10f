//! Recipients: a CSV file becomes a stream of numbered records with phone numbers.
