// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"fmt"
	"testing"
)

// The length of a record is limited, even if edited.
func TestTheRecordOfPlacesIsBounded(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprint("lb-", i))
	}
	if got := addFormer([]string{"kubernetes", "lb-7"}, many); len(got) != maxFormer || got[0] != "kubernetes" || got[1] != "lb-7" {
		t.Errorf("got %v", got)
	}
	if got := addFormer(many, nil); len(got) != len(many) {
		t.Errorf("of the cluster's own there are %d left", len(got))
	}
}
