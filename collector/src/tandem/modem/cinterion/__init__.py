"""Cinterion modules (Gemalto, Thales): PLS62, PLS8, PLAS9 by ^SMONI; MV31 by ^DEBUG?."""
