// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd starts a single etcd member on a free port of 127.0.0.1 with its data in dir, logs to
// logFile, and returns the URL once the member is ready.
//
// The member is never closed: Close waits for kube-apiserver's open watches (8.7 s measured). Exiting
// loses nothing, because etcd replays its log at the next start.
func startEtcd(ctx context.Context, dir, logFile string) (string, error) {
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = anyPort, anyPort
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = anyPort, anyPort
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.EnableGRPCGateway = false // it would dial port 0
	// Without this, embedded etcd logs every request as slow.
	cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	cfg.LogLevel = "warn"
	cfg.LogOutputs = []string{logFile}
	// Fsync on every write is too slow; a lab may lose its data on power loss.
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
