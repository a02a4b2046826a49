// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd starts a single etcd member on a free port of 127.0.0.1 with its
// data in dir, and returns its URL once it answers. Its warnings go to logFile.
//
// The member is never closed: that waits for streams of kube-apiserver that do
// not end (8.7 s measured), while a process that just exits loses nothing. What
// was written is with the operating system, and the log replays at next start.
func startEtcd(ctx context.Context, dir, logFile string) (string, error) {
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = anyPort, anyPort
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = anyPort, anyPort
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.EnableGRPCGateway = false // it would dial port 0
	// Without this, an embedded etcd finds every request slow and logs it.
	cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	cfg.LogLevel = "warn"
	cfg.LogOutputs = []string{logFile}
	// A lost power supply may cost a lab its data; waiting for the disk at
	// every write would cost it most of its speed.
	cfg.UnsafeNoFsync = true
	member, err := embed.StartEtcd(cfg)
	if err != nil {
		return "", err
	}
	select {
	case <-member.Server.ReadyNotify():
		return "http://" + member.Clients[0].Addr().String(), nil
	case err := <-member.Err():
		return "", err
	case <-ctx.Done():
		return "", errors.New("no answer in time")
	}
}
