package explore_test

import "testing"

func TestTheExample(t *testing.T) { testCopier(t) }
