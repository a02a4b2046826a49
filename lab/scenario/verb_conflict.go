// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

func doConflict(s *Stage, a *argReader) (string, error) {
	if !a.hasArg("answer") {
		return "", s.otherWriter(a)
	}
	action := map[string]any{}
	switch answer := a.intArg("answer", 0); answer {
	case http.StatusConflict:
		action["status"] = answer
		addErrorCode(action, "AnotherOperationInProgress")
	case http.StatusPreconditionFailed: // another writer wins right before each of our writes
		action["bumpEtag"] = true
	default:
		a.addError("answer=%d: want 409 or 412", answer)
	}
	return "", s.addFaultFrom(a, s.parseLockMatch(a, "PUT"), action)
}

// otherWriter writes a pool at once. Addresses it adds are foreign.
func (s *Stage) otherWriter(a *argReader) error {
	add, remove, name := a.textArg("add", ""), a.textArg("remove", ""), a.textArg("pool", "")
	down, up := a.textArg("down", ""), a.textArg("up", "")
	if err := a.joinErrors(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.poolNamed(name)
	if k == nil {
		return fmt.Errorf("there is no pool %s", name)
	}
	held, ok := s.azureAddresses(k)
	held = slices.Clone(held)
	if !ok {
		return fmt.Errorf("pool %s is not in Azure", name)
	}
	if add != "" {
		ip, err := netip.ParseAddr(add)
		if err != nil {
			return err
		}
		f := lb.Address{Name: "f-" + strings.NewReplacer(".", "-", ":", "-").Replace(add), IP: ip}
		k.foreign = append(k.foreign, f)
		held = append(held, f)
	}
	if remove != "" {
		isIt := func(e lb.Address) bool { return e.Name == remove }
		k.foreign = slices.DeleteFunc(k.foreign, isIt)
		held = slices.DeleteFunc(held, isIt)
		k.recordDrift()
	}
	for i, e := range held {
		switch {
		case e.Name == down && e.AdminState != lb.Down:
			held[i].AdminState = lb.Down
			k.setForeign(held[i])
			s.recordForeignDown(k, e.IP)
		case e.Name == up && e.AdminState == lb.Down:
			held[i].AdminState = lb.None
			k.setForeign(held[i])
			delete(k.foreignDown, e.IP)
			k.recordDrift()
		}
	}
	s.addLine(k.id.Name, "written by another client")
	return s.overwritePool(k, held)
}

// setForeign updates a foreign address. The caller holds the stage's mu.
func (p *pool) setForeign(e lb.Address) {
	for i, f := range p.foreign {
		if f.IP == e.IP {
			p.foreign[i] = e
		}
	}
}

// overwritePool replaces the addresses of a pool as another writer would.
func (s *Stage) overwritePool(k *pool, held []lb.Address) error {
	list := []any{}
	for _, e := range held {
		properties := map[string]any{"ipAddress": e.IP.String()}
		if e.AdminState != "" {
			properties["adminState"] = e.AdminState
		}
		list = append(list, map[string]any{"name": e.Name, "properties": properties})
	}
	body, err := json.Marshal(map[string]any{"name": k.id.Name, "properties": map[string]any{
		"virtualNetwork": map[string]any{"id": networkID}, "loadBalancerBackendAddresses": list,
	}})
	if err != nil {
		return err
	}
	s.invalidateSnapshots()
	return s.emulator.Put(k.id.String(), body)
}
