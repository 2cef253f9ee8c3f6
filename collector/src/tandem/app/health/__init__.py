"""The probe's health: parsers of what kernel and firmware tell, one round of records, what is wrong."""
