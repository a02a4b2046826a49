// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
)

// Without published Services, enabling Private Link Services changes neither calls nor trace.
func TestUnpublishedServiceIsUnchanged(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if script := string(raw); !strings.Contains(script, "stage links") {
			played++
			t.Run(filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				samePlayed(t, script)
			})
		}
	}
	if played == 0 {
		t.Fatal("all scripts are about Private Link Services")
	}
}

// samePlayed plays a script with and without Private Link Services.
func samePlayed(t *testing.T, script string) {
	t.Helper()
	trace, calls := playScript(t, script)
	withTrace, withCalls := playScript(t, script, func(set *loadbalancer.Settings) {
		set.PrivateLinks = lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resources}
	})
	slices.Sort(calls) // calls of one instant have no order
	slices.Sort(withCalls)
	if diff := cmp.Diff(trace, withTrace); diff != "" {
		t.Errorf("it says -without +with\n%s", diff)
	}
	if diff := cmp.Diff(calls, withCalls); diff != "" {
		t.Errorf("it asks -without +with\n%s", diff)
	}
}
