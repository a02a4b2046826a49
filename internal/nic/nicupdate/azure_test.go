// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

func (w *world) EnterResource(id lb.ResourceID) (time.Time, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gate(id)
}

// call records a call, takes its time, and returns the configured failure.
func (w *world) call(ctx context.Context, about string, lasts time.Duration) error {
	w.mu.Lock()
	w.calls = append(w.calls, w.stamp(about))
	err, onCall := w.fail(about), w.onCall
	w.mu.Unlock()
	onCall(about)
	if ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(lasts):
		}
	}
	if ctx.Err() != nil {
		return armerror.Classify(armerror.Failure{ResultUnknown: true}, ctx.Err())
	}
	return err
}

// write is call for a write. It reports an error if another write to the resource is running.
func (w *world) write(ctx context.Context, about, lane string) error {
	w.mu.Lock()
	if w.writing[lane] {
		w.t.Errorf("%s while another write is under way", about)
	}
	w.writing[lane] = true
	w.most = max(w.most, len(w.writing))
	lasts := w.written
	w.mu.Unlock()
	err := w.call(ctx, about, lasts)
	w.mu.Lock()
	delete(w.writing, lane)
	w.mu.Unlock()
	return err
}

const readLasts = 100 * time.Millisecond

var errOvertaken = armerror.Classify(armerror.Failure{Status: 412}, errors.New("overtaken"))

func guarded(before, current string) error {
	switch {
	case before == "":
		return errors.New("a write without an etag")
	case before != current:
		return errOvertaken
	}
	return nil
}

func (w *world) ListInterfaces(ctx context.Context, _, group string) ([]lb.NetworkInterface, error) {
	if err := w.call(ctx, "LIST", readLasts); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var interfaces []lb.NetworkInterface
	for _, i := range w.nics {
		if i.ID.ResourceGroup != group {
			continue
		}
		nic := *i
		if w.bare {
			nic.Etag = ""
		}
		interfaces = append(interfaces, nic)
	}
	return interfaces, nil
}

func (w *world) GetInterface(ctx context.Context, id lb.ResourceID) (lb.NetworkInterface, error) {
	name := strings.TrimPrefix(id.Name, "nic-")
	if err := w.call(ctx, "GET "+name, readLasts); err != nil {
		return lb.NetworkInterface{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nics[name] == nil {
		return lb.NetworkInterface{}, errGone
	}
	return *w.nics[name], nil
}

func (w *world) PrimaryInterface(ctx context.Context, vm lb.ResourceID) (lb.ResourceID, error) {
	if err := w.call(ctx, "VM "+vm.Name, readLasts); err != nil {
		return lb.ResourceID{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nics[vm.Name] == nil {
		return lb.ResourceID{}, nil
	}
	return w.nics[vm.Name].ID, nil
}

func (w *world) PutInterface(ctx context.Context, next lb.NetworkInterface) (lb.NetworkInterface, error) {
	name := strings.TrimPrefix(next.ID.Name, "nic-")
	if err := w.write(ctx, "PUT "+name, next.ID.Key()); err != nil {
		return lb.NetworkInterface{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.nics[name]
	if got == nil {
		return lb.NetworkInterface{}, errGone
	}
	if err := guarded(next.Etag, got.Etag); err != nil {
		return lb.NetworkInterface{}, err
	}
	before := *got
	w.keeps(name, got.InterfaceConfiguration, next.InterfaceConfiguration)
	got.Etag, got.Provisioning, got.InterfaceConfiguration = w.etag(), lb.Succeeded, next.InterfaceConfiguration
	if w.ignores {
		*got = before
	}
	return *got, w.answer("PUT " + name)
}

// ListScaleSets implements Azure. It is counted separately, because pools cause it, not machines.
func (w *world) ListScaleSets(context.Context, string, string) ([]lb.ScaleSet, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setLists++
	if err := w.fail("SETS"); err != nil {
		return nil, err
	}
	var sets []lb.ScaleSet
	for _, name := range slices.Sorted(maps.Keys(w.sets)) {
		sets = append(sets, *w.sets[name])
	}
	return sets, nil
}

func (w *world) GetScaleSet(ctx context.Context, id lb.ResourceID) (lb.ScaleSet, error) {
	if err := w.call(ctx, "SET "+id.Name, readLasts); err != nil {
		return lb.ScaleSet{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sets[id.Name] == nil {
		return lb.ScaleSet{}, errGone
	}
	return *w.sets[id.Name], nil
}

func (w *world) PatchModel(ctx context.Context, next lb.ScaleSet) (lb.ScaleSet, error) {
	name := next.ID.Name
	if err := w.write(ctx, "PATCH "+name, next.ID.Key()); err != nil {
		return lb.ScaleSet{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.sets[name]
	if err := guarded(next.Etag, got.Etag); err != nil {
		return lb.ScaleSet{}, err
	}
	w.keeps(name, got.Interfaces[0], next.Interfaces[0])
	if !w.ignores {
		w.models(name, next.Interfaces)
	}
	return *got, w.answer("PATCH " + name)
}

// answer returns the response to a write that took effect. The caller holds w.mu.
func (w *world) answer(about string) error {
	if w.lose(about) {
		return armerror.Classify(armerror.Failure{ResultUnknown: true}, errors.New("no answer"))
	}
	return nil
}

// keeps reports an error if a write adds or removes a foreign pool: one of a load balancer whose
// name starts with x. The caller holds w.mu.
func (w *world) keeps(name string, before, next lb.InterfaceConfiguration) {
	if old, next := foreign(saidOf(before)), foreign(saidOf(next)); old != next {
		w.t.Errorf("the foreign pools of %s were %q and become %q", name, old, next)
	}
}

func foreign(output string) string {
	return only(output, func(pool string) bool { return pool[0] == 'x' })
}

func only(output string, keep func(string) bool) string {
	var families []string
	for family := range strings.SplitSeq(output, "|") {
		families = append(families, strings.Join(slices.DeleteFunc(strings.Fields(family), func(p string) bool { return !keep(p) }), " "))
	}
	return strings.TrimRight(strings.Join(families, "|"), "|")
}

// models changes a model. The caller holds w.mu.
func (w *world) models(name string, interfaces []lb.InterfaceConfiguration) {
	w.changed[name] = true
	w.sets[name].Etag, w.sets[name].Interfaces = w.etag(), interfaces
	for key, i := range w.insts {
		if strings.HasPrefix(key, name+"/") {
			i.LatestModel = false
		}
	}
}

func (w *world) ListInstances(ctx context.Context, set lb.ResourceID) ([]lb.Instance, error) {
	if err := w.call(ctx, "INSTANCES "+set.Name, readLasts); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var instances []lb.Instance
	for key, i := range w.insts {
		if strings.HasPrefix(key, set.Name+"/") {
			single := *i
			if w.bare {
				single.Etag = ""
			}
			instances = append(instances, single)
		}
	}
	return instances, nil
}

func (w *world) GetInstance(ctx context.Context, set lb.ResourceID, id string) (lb.Instance, error) {
	name := set.Name + "/" + id
	if err := w.call(ctx, "GET "+name, readLasts); err != nil {
		return lb.Instance{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.insts[name] == nil {
		return lb.Instance{}, errGone
	}
	return *w.insts[name], nil
}

func (w *world) PutInstance(ctx context.Context, next lb.Instance) (lb.Instance, error) {
	name := next.ScaleSet.Name + "/" + next.ID
	if err := w.write(ctx, "PUT "+name, next.ScaleSet.Key()); err != nil {
		return lb.Instance{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.insts[name]
	if got == nil {
		return lb.Instance{}, errGone
	}
	if err := guarded(next.Etag, got.Etag); err != nil {
		return lb.Instance{}, err
	}
	w.keeps(name, got.Interfaces[0], next.Interfaces[0])
	if w.ignores {
		return *got, nil
	}
	got.Etag, got.Provisioning, got.Interfaces, got.LatestModel = w.etag(), lb.Succeeded, next.Interfaces, false
	return *got, w.answer("PUT " + name)
}

func (w *world) UpgradeInstances(ctx context.Context, set lb.ResourceID, instances []string) error {
	if err := w.write(ctx, "UPGRADE "+set.Name+" "+strings.Join(instances, " "), set.Key()); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.upgrades(set.Name, instances...)
	return w.answer("UPGRADE " + set.Name)
}

// upgrades brings instances to their model. The caller holds w.mu.
func (w *world) upgrades(set string, instances ...string) {
	for name, i := range w.insts {
		if strings.HasPrefix(name, set+"/") && slices.Contains(instances, i.ID) {
			i.Etag, i.LatestModel, i.Interfaces, i.Provisioning = w.etag(), true, w.sets[set].Interfaces, lb.Succeeded
		}
	}
}
