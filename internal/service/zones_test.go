// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"strings"
	"testing"
)

// A Service names zones for its new public IPs or private frontends. A wrong value is an error, also with private
// frontends.
func TestZonesOfAService(t *testing.T) {
	for value, want := range map[string]string{
		"": "[]", " ": "[]", "1": "[1]", "3, 1,2": "[1 2 3]", "1,,2": "[1 2]",
	} {
		public, private := buildValidSpec(t, newService(withAnnotation(Zones, value), asDualStack), testSettings()), buildValidSpec(t, newService(withAnnotation(Zones, value), asInternal), testSettings())
		for _, f := range public.Frontends {
			if got := fmt.Sprint(f.PublicIP.Zones); got != want || f.Frontend.Zones != nil {
				t.Errorf("%q: public IP %s, frontend %v", value, got, f.Frontend.Zones)
			}
		}
		if got := fmt.Sprint(private.Frontends[0].Frontend.Zones); got != want {
			t.Errorf("%q: frontend %s", value, got)
		}
	}
	for _, value := range []string{"0", "1,1", "1 2", "eastus-1", "none"} {
		for _, s := range []Service{newService(withAnnotation(Zones, value)), newService(withAnnotation(Zones, value), asInternal)} {
			_, problems := BuildSpec(s, testSettings())
			if len(problems) != 1 || problems[0].Field != Zones || !strings.Contains(problems[0].Error(), "different zones, each a digit from 1 to 9, separated by commas") {
				t.Errorf("%q: %v", value, problems)
			}
		}
	}
}
