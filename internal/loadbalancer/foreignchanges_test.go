// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
)

// period is the resync period.
const period = 10 * time.Minute

// looks resyncs all Services a number of times, once per period. Foreign changes come a minute before.
func (s *stage) looks(times int, limit time.Duration) (output string) {
	for range times {
		time.Sleep(period - time.Minute)
		output += s.harvest(false) // without foreign writes
		s.meddle()
		time.Sleep(time.Minute)
		s.look()
		s.settle(min(limit, period/4))
	}
	return output
}

// again sets the user's retry token.
func (s *stage) again(name string) {
	s.mu.Lock()
	s.services[name].again += "!"
	s.process.claims[name].inSync = nil
	s.mu.Unlock()
	s.process.kick(name)
}

// meddle applies the repeated foreign changes. "resource list/name field=value" sets a field of a part, or of
// the resource itself if the list is "-"; "resource list/name" removes the part. A security rule may be named
// by @ and its source.
func (s *stage) meddle() {
	for _, args := range s.strangers {
		id := network + "/" + args[0].Key
		body := s.bodies("/" + strings.Split(args[0].Key, "/")[0] + "/")[id]
		if body == nil {
			panic("nothing of this id: " + id)
		}
		before, err := json.Marshal(body)
		must(err)
		set(body, args[1].Key, args[2:]...)
		after, err := json.Marshal(body)
		must(err)
		if string(before) != string(after) {
			s.write(id, after)
		}
	}
}

// set applies one foreign change.
func set(body map[string]any, about string, args ...datadriven.CmdArg) {
	list, name, _ := strings.Cut(about, "/")
	if list == "tags" {
		tags, _ := body["tags"].(map[string]any)
		tags[name] = args[0].Key
		return
	}
	props, _ := body["properties"].(map[string]any)
	parts, _ := props[list].([]any)
	at := slices.IndexFunc(parts, func(p any) bool {
		part, _ := p.(map[string]any)
		inner, _ := part["properties"].(map[string]any)
		return part["name"] == name || "@"+fmt.Sprint(inner["sourceAddressPrefix"]) == name
	})
	switch {
	case at < 0:
	case len(args) == 0:
		props[list] = slices.Delete(parts, at, at+1)
	default:
		inner, _ := parts[at].(map[string]any)["properties"].(map[string]any)
		var value any
		must(json.Unmarshal([]byte(args[0].Vals[0]), &value))
		inner[args[0].Key] = value
	}
}
