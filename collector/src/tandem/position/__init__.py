"""Where the probe is: gpsd's reports, made into records that keep homes private."""
