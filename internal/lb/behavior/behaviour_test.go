// SPDX-License-Identifier: Apache-2.0

package behavior_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb/behavior"
)

// TestQuestionsAreTheFields checks that questions match the fields, in order.
func TestQuestionsAreTheFields(t *testing.T) {
	fields := reflect.TypeFor[behavior.Behavior]()
	properties := behavior.AllProperties()
	if fields.NumField() != len(properties) {
		t.Fatalf("%d fields and %d questions", fields.NumField(), len(properties))
	}
	for i, q := range properties {
		if tag, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ","); tag != q.Name {
			t.Errorf("field %d is %q, the question %q", i, tag, q.Name)
		}
		if len(q.Results) < 2 || q.Description == "" || q.Source == "" {
			t.Errorf("question %q is not whole", q.Name)
		}
		if got := behavior.AssumedBehavior().GetResult(i); got != q.Results[0] {
			t.Errorf("%s is assumed to be %q, the first answer is %q", q.Name, got, q.Results[0])
		}
	}
}

func TestJSONIsStrict(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{`{"wholeWriteAddresses":"taken"}`, "wholeWriteAddresses=taken"},
		{`{}`, "as assumed"},
		{`{"wholeWriteAddresses":"maybe"}`, `error: wholeWriteAddresses: "maybe" is invalid: use one of [ignored taken]`},
		{`{"colour":"red"}`, `error: no question of Azure's behaviour is named "colour": use one of wholeWriteAddresses, `},
		{`[]`, "error: json: "},
	} {
		var b behavior.Behavior
		err := json.Unmarshal([]byte(row.text), &b)
		got := b.String()
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: got %s, want %s", row.text, got, row.want)
		}
	}
}

func TestOrKeepsWhatIsKnown(t *testing.T) {
	seen := behavior.Behavior{UpdateAddresses: behavior.Accepted}
	defaults := seen.WithDefaults(behavior.AssumedBehavior())
	if defaults.UpdateAddresses != behavior.Accepted || defaults.Overlap != behavior.Supersede {
		t.Errorf("got %+v", defaults)
	}
	if seen.Overlap != "" {
		t.Error("Or has changed its receiver")
	}
}
