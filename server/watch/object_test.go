package watch

import "testing"

func TestWhatIsForgottenIsDerivedAgain(t *testing.T) {
	o, made := lineObject(t, "a", "1", 4), 0
	derive := func() {
		if _, err := o.Derive("form", func(*Object) (any, error) { made++; return made, nil }); err != nil {
			t.Fatal(err)
		}
	}
	derive()
	derive()
	o.Forget("form")
	o.Forget("another")
	derive()
	if made != 2 {
		t.Errorf("it was made %d times", made)
	}
}
