// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/lab/armemu"
)

func unknownMembers() *rapid.Generator[map[string]any] {
	leaf := rapid.OneOf(
		rapid.Map(rapid.StringMatching(`[a-z]{0,8}`), func(s string) any { return s }),
		rapid.Map(rapid.IntRange(-9, 9), func(n int) any { return float64(n) }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
	)
	name := rapid.StringMatching(`foreign[A-Z][a-z]{0,4}`)
	value := rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(leaf, 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(name, leaf, 0, 3), func(m map[string]any) any { return m }),
	)
	return rapid.MapOfN(name, value, 0, 3)
}

func addUnknownMembers(t *rapid.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, member := range v {
			out[key] = addUnknownMembers(t, member)
		}
		for key, member := range unknownMembers().Draw(t, "foreign") {
			out[key] = member
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, member := range v {
			out[i] = addUnknownMembers(t, member)
		}
		return out
	}
	return v
}

func findMissing(got, want any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		present, _ := got.(map[string]any)
		for key, member := range want {
			if wrong := findMissing(present[key], member, path+"."+key); wrong != "" {
				return wrong
			}
		}
		return ""
	case []any:
		there, _ := got.([]any)
		if len(there) != len(want) {
			return fmt.Sprintf("%s has %d members, want %d", path, len(there), len(want))
		}
		for i, member := range want {
			if wrong := findMissing(there[i], member, fmt.Sprintf("%s[%d]", path, i)); wrong != "" {
				return wrong
			}
		}
		return ""
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("%s is %v, want %v", path, got, want)
	}
	return ""
}

func TestForeignMembersSurviveAnyPut(t *testing.T) {
	bodies := map[string]string{
		nics + "n":                   nicInPools(`"primary":true,"privateIPAddressVersion":"IPv4","applicationGatewayBackendAddressPools":[{"id":"/gateway"}],`, poolID),
		vmID:                         `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"` + nics + `n","properties":{"primary":true}}]},"availabilitySet":{"id":"/as"}}}`,
		setID:                        setBody("Rolling", 0, poolID),
		setID + "/virtualMachines/0": instanceInPools(poolID),
	}
	rapid.Check(t, func(rt *rapid.T) {
		emu := newCloud(t, armemu.Options{})
		putResource(t, emu, setID, `{"location":"eastus"}`)
		id := rapid.SampledFrom([]string{nics + "n", vmID, setID, setID + "/virtualMachines/0"}).Draw(rt, "id")
		query := "?api-version=2024-05-01"
		if strings.Contains(id, "Compute") {
			query = computeAPI
		}
		var body any
		if err := json.Unmarshal([]byte(bodies[id]), &body); err != nil {
			rt.Fatal(err)
		}
		sent := addUnknownMembers(rt, body)
		raw, err := json.Marshal(sent)
		if err != nil {
			rt.Fatal(err)
		}
		sees := func(when string) (read string) {
			a := sendRequest(t, emu, http.MethodGet, id+query, "")
			if wrong := findMissing(a.body, sent, ""); wrong != "" {
				rt.Fatalf("%s: %s in %s", when, wrong, a.raw)
			}
			return a.raw
		}
		if a := sendRequest(t, emu, http.MethodPut, id+query, string(raw)); a.status > 201 {
			rt.Fatalf("%d %s", a.status, a.raw)
		}
		read := sees("after the PUT")
		if a := sendRequest(t, emu, http.MethodPut, id+query, read); a.status != 200 {
			rt.Fatalf("%d %s", a.status, a.raw)
		}
		sees("after a PUT of what was read")
		if err := emu.Restore(emu.Snapshot()); err != nil {
			rt.Fatal(err)
		}
		sees("after a snapshot")
	})
}
