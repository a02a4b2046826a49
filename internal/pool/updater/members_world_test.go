// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/pool/diff"
)

// machineTime is the duration of a machine write.
const machineTime = 5 * time.Second

// machineLanes implements Members: machines are written concurrently, and then their interfaces are
// in the pool.
type machineLanes struct {
	w *world
	// homeless are nodes with unknown machines, waits machines that Azure is updating, fails
	// machines with a failing next write, and missing machines that Azure does not have.
	homeless map[string]string
	gone     map[string]bool
	looked   map[string]bool // and were read
	waits    map[string]string
	fails    map[string]armerror.Failure

	targets map[lb.PoolKey]nic.Target
	working map[lb.PoolKey]map[string]bool
	failed  map[lb.PoolKey][]nic.Failure
	deaf    bool // never signals completion
	atOnce  bool // completes before the caller waits
}

func inMemberWorld(t *testing.T, cfg Config, explanation func(w *world)) {
	cfg.Members = &machineLanes{
		homeless: map[string]string{}, gone: map[string]bool{}, looked: map[string]bool{}, waits: map[string]string{}, fails: map[string]armerror.Failure{}, targets: map[lb.PoolKey]nic.Target{},
		working: map[lb.PoolKey]map[string]bool{}, failed: map[lb.PoolKey][]nic.Failure{},
	}
	cfg.AdminState = true
	inWorldOf(t, cfg, func(w *world) {
		w.machines = map[string]netip.Addr{}
		for i := range 8 {
			w.machines[fmt.Sprintf("n%d", i+1)] = netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		}
		explanation(w)
	})
}

// machineOf returns the machine of a name.
func machineOf(name string) nic.Machine {
	m, err := nic.ParseMachine("azure:///subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/" + name)
	if err != nil {
		panic(err)
	}
	return m
}

// desired returns the Machines of a Desired. The caller holds w.mu.
func (m *machineLanes) desired() *diff.Machines {
	if m == nil {
		return nil
	}
	homeless := maps.Clone(m.homeless)
	return &diff.Machines{Family: lb.IPv4, Configuration: "kubernetes", Every: true, Lookup: func(node string) (nic.Machine, error) {
		if reason := homeless[node]; reason != "" {
			return nic.Machine{}, errors.New(reason)
		}
		return machineOf(node), nil
	}}
}

// nics adds machines' interfaces to a pool of network interfaces.
func (w *world) nics(id lb.PoolID, names string) {
	p := &lb.Pool{ID: id, Etag: "1"}
	w.pools[id.Key()] = p
	for name := range strings.FieldsSeq(names) {
		name, state, _ := strings.Cut(name, "/")
		p.NIC = true
		p.Addresses = append(p.Addresses, lb.Address{Name: "rg_nic-" + name, Interface: "nic-" + name, AdminState: state})
	}
}

// withStates returns the current interfaces with the written admin states.
func withStates(current, written []lb.Address) []lb.Address {
	next := slices.Clone(current)
	for i, a := range next {
		if at := slices.IndexFunc(written, func(b lb.Address) bool { return a.Interface == b.Interface }); at >= 0 {
			next[i].AdminState = written[at].AdminState
		}
	}
	return next
}

// SetTarget implements Members.
func (m *machineLanes) SetTarget(pool nic.Target) nic.State {
	state := m.bring(pool)
	for _, machine := range state.Working {
		if m.atOnce {
			m.done(pool.ID, machine, true)
		}
	}
	return state
}

func (m *machineLanes) bring(pool nic.Target) nic.State {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	key := pool.ID.Key()
	m.w.calls = append(m.w.calls, fmt.Sprintf("+%s BRING %s %s-%s", time.Since(m.w.start), pool.ID.Name, names(pool.Members), names(pool.ToRemove)))
	m.targets[key] = pool
	if m.working[key] == nil {
		m.working[key] = map[string]bool{}
	}
	state := nic.State{Failed: m.failed[key]}
	failed := state.Failed
	m.failed[key] = nil
	for _, machine := range slices.Concat(pool.Members, pool.ToRemove) {
		name := machine.VM.Name
		joins := slices.ContainsFunc(pool.Members, func(o nic.Machine) bool { return o.Key() == machine.Key() })
		switch {
		case m.shows(key, name) == joins, slices.ContainsFunc(failed, func(f nic.Failure) bool { return f.Machine.Key() == machine.Key() }):
		case m.gone[name] && m.working[key][name]:
			state.Working = append(state.Working, machine)
		case m.gone[name] && m.looked[name]:
			state.Unavailable = append(state.Unavailable, nic.WaitingMachine{Machine: machine, Reason: "Azure has no " + machine.String()})
		case m.gone[name]:
			state.Working = append(state.Working, machine)
			m.working[key][name] = true
			time.AfterFunc(time.Second, func() { m.looks(pool.ID, name) })
		case m.waits[name] != "":
			state.Waiting = append(state.Waiting, nic.WaitingMachine{Machine: machine, Reason: m.waits[name]})
		default:
			state.Working = append(state.Working, machine)
			if !m.working[key][name] && !m.atOnce {
				m.working[key][name] = true
				time.AfterFunc(machineTime, func() { m.done(pool.ID, machine, joins) })
			}
		}
	}
	return state
}

func names(machines []nic.Machine) string {
	short := make([]string, len(machines))
	for i, m := range machines {
		short[i] = m.VM.Name
	}
	return fmt.Sprint(short)
}

// shows reports whether a pool has a machine's interface. The caller holds w.mu.
func (m *machineLanes) shows(pool lb.PoolKey, name string) bool {
	p := m.w.pools[pool]
	return p != nil && slices.ContainsFunc(p.Addresses, func(a lb.Address) bool { return a.Interface == "nic-"+strings.ToLower(name) })
}

// looks finds that Azure does not have a machine.
func (m *machineLanes) looks(id lb.PoolID, name string) {
	m.w.mu.Lock()
	delete(m.working[id.Key()], name)
	m.looked[name] = true
	m.w.mu.Unlock()
	m.w.lanes.NotifyMachinesDone(id)
}

// done completes the write of a machine.
func (m *machineLanes) done(id lb.PoolID, machine nic.Machine, joins bool) {
	name := strings.ToLower(machine.VM.Name)
	m.w.mu.Lock()
	p, last := m.w.pools[id.Key()], false
	delete(m.working[id.Key()], machine.VM.Name)
	answer, fails := m.fails[name]
	switch {
	case fails:
		delete(m.fails, name)
		m.failed[id.Key()] = append(m.failed[id.Key()], nic.Failure{Machine: machine, Err: armerror.Classify(answer, errors.New("Azure refuses "+name))})
	case joins && !m.shows(id.Key(), name):
		p.NIC, p.Etag = true, nextEtag(p.Etag)
		p.Addresses = append(slices.Clone(p.Addresses), lb.Address{Name: "rg_nic-" + name, Interface: "nic-" + name})
		slices.SortFunc(p.Addresses, func(a, b lb.Address) int { return strings.Compare(a.Name, b.Name) })
	case !joins:
		p.Addresses = slices.DeleteFunc(slices.Clone(p.Addresses), func(a lb.Address) bool { return a.Interface == "nic-"+name })
		p.NIC, p.Etag = len(p.Addresses) > 0, nextEtag(p.Etag)
	}
	last = len(m.working[id.Key()]) == 0 && !m.deaf
	m.w.mu.Unlock()
	if last {
		m.w.lanes.NotifyMachinesDone(id)
	}
}

// Forget implements Members.
func (m *machineLanes) Forget(pool lb.PoolID) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.w.calls = append(m.w.calls, fmt.Sprintf("+%s FORGET %s", time.Since(m.w.start), pool.Name))
	delete(m.targets, pool.Key())
}
