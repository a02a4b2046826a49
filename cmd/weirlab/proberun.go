// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/probe"
)

// probeOptions are what a probe needs to know.
type probeOptions struct {
	// ConfigFile is azure.json; AzureEndpoint is an emulator's URL, empty means Azure.
	ConfigFile, AzureEndpoint string
	// Subscription and Location default to those of azure.json.
	Subscription, Location string
	// VMSize and Image default to those of package probe.
	VMSize, Image    string
	SkipConfirmation bool
	// Timeout bounds the probe; cleanup comes after it.
	Timeout time.Duration

	In io.Reader
	// Say receives progress, one line at a time.
	Say func(text string)
	Log *slog.Logger
}

// probeAzure creates a resource group, probes Azure's behavior and deletes the group. With an error, the
// report is partial.
func (o probeOptions) probeAzure(ctx context.Context) (behavior.Report, error) {
	none := behavior.Report{}
	cfg, raw, err := o.connectAzure()
	if err != nil {
		return none, err
	}
	if o.Timeout <= 0 {
		return none, usageError{fmt.Errorf("--timeout %s: want more than 0", o.Timeout)}
	}
	s := probe.Settings{
		Subscription: cmp.Or(o.Subscription, cfg.SubscriptionID), Location: cmp.Or(o.Location, cfg.Location),
		VMSize: o.VMSize, Image: o.Image, Suffix: strings.ToLower(rand.Text()[:10]),
		Version: app.Version, Cloud: o.cloudName(cfg), Secrets: listSecrets(cfg),
	}
	if s, err = s.Normalize(); err != nil {
		return none, usageError{err}
	}
	if s.Key, err = probe.NewDiscardedKey(); err != nil {
		return none, err
	}
	o.Say(s.FormatOffer())
	if err := o.requestConfirmation(ctx, "Make the resource group, and delete it again?"); err != nil {
		return none, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("the questions took longer than --timeout %s", o.Timeout))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		o.Say("stopping: what was made is deleted first. If you stop it once more, " + s.GroupName() + " remains; weirlab probe-azure --clean deletes it")
	})()
	report, err := probe.Probe{Azure: raw, Settings: s, Log: o.Say}.Run(limited)
	return report, addCleanupHint(err, s.Subscription)
}

// cleanProbes deletes the resource groups of earlier probes.
func (o probeOptions) cleanProbes(ctx context.Context) error {
	cfg, raw, err := o.connectAzure()
	if err != nil {
		return err
	}
	subscription := cmp.Or(o.Subscription, cfg.SubscriptionID)
	if err := probe.CheckSubscription(subscription); err != nil {
		return usageError{err}
	}
	found, err := probe.FindGroups(ctx, raw, subscription)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		o.Say("subscription " + subscription + " has no resource group that a probe has left behind")
		return nil
	}
	for _, l := range found {
		o.Say(fmt.Sprintf("resource group %s in %s, made %s", l.Name, l.Location, l.Created))
	}
	if err := o.requestConfirmation(ctx, fmt.Sprintf("Delete these resource groups (%d), with all they hold?", len(found))); err != nil {
		return err
	}
	return addCleanupHint(probe.RemoveGroups(ctx, raw, subscription, found, o.Say), subscription)
}

func (o probeOptions) connectAzure() (config.Config, *azure.RawClient, error) {
	cfg, ignored, err := config.Load(o.ConfigFile)
	if err != nil {
		return cfg, nil, usageError{fmt.Errorf("--config: %w", err)}
	}
	if warning := ignored.WarningText(); warning != "" {
		o.Log.Warn(warning, "config", o.ConfigFile)
	}
	client, err := app.NewClient(app.Options{ConfigFile: o.ConfigFile, AzureEndpoint: o.AzureEndpoint, Log: o.Log}, cfg)
	if invalid, ok := errors.AsType[*app.UsageError](err); ok {
		return cfg, nil, usageError{invalid}
	}
	if err != nil {
		return cfg, nil, err
	}
	raw, err := client.NewRawClient()
	return cfg, raw, err
}

func (o probeOptions) cloudName(cfg config.Config) string {
	if o.AzureEndpoint != "" {
		return behavior.EmulatorCloud
	}
	return azure.CanonicalCloudName(cfg.Name)
}

// listSecrets returns values of azure.json that must not be in a report.
func listSecrets(cfg config.Config) []string {
	return []string{
		cfg.SubscriptionID, cfg.TenantID, cfg.AADClientID, cfg.UserAssignedIdentityID,
		cfg.AADClientSecret.Reveal(), cfg.AADClientCertPassword.Reveal(),
	}
}

func (o probeOptions) requestConfirmation(ctx context.Context, question string) error {
	if o.SkipConfirmation {
		return nil
	}
	o.Say(question + " (yes/no)")
	answers := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(o.In).ReadString('\n') // no input means no
		answers <- strings.ToLower(strings.TrimSpace(text))
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errors.New("not confirmed, nothing was done: enter yes, or use --yes")
	}
}

// addCleanupHint adds instructions to delete a remaining resource group.
func addCleanupHint(err error, subscription string) error {
	orphan, ok := errors.AsType[*probe.OrphanError](err)
	if !ok {
		return err
	}
	hint := "It may still cost money."
	if orphan.Uncertain {
		hint = "It would be empty and cost nothing."
	}
	return fmt.Errorf("%w\n%s Delete it: az group delete --subscription %s --name %s\nor: weirlab probe-azure --clean --subscription %[3]s", err, hint, subscription, orphan.Group)
}
