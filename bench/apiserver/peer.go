//go:build linux

package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/even-keel/evenkeel/bench/machine"
)

// kubernetes is kube-apiserver on an etcd of its own, both alone on this machine
// and with their defaults: etcd syncs every write. The two talk without TLS,
// which is to their advantage.
func kubernetes(p peerPrograms, c certs) system {
	return system{name: "kube-apiserver + etcd", start: func(ctx context.Context, dir string) (*instance, error) {
		i := &instance{}
		if err := i.startPeer(ctx, dir, p, c); err != nil {
			i.family.Kill()
			return nil, err
		}
		i.took = time.Since(i.family[0].Started)
		return i, nil
	}}
}

// startPeer starts kube-apiserver as soon as etcd is ready: earlier, it would
// wait a second before it asks again.
func (i *instance) startPeer(ctx context.Context, dir string, p peerPrograms, c certs) (err error) {
	etcdURL, err := i.startEtcd(ctx, dir, p.etcd)
	if err != nil {
		return err
	}
	if i.client, err = machine.ClientTLS(c.admin, c.caPEM); err != nil {
		return err
	}
	if i.address, err = machine.FreeAddress(); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(i.address)
	if err != nil {
		return err
	}
	server, err := machine.Start(dir, "kube-apiserver", p.apiserver,
		"--etcd-servers="+etcdURL,
		"--bind-address=127.0.0.1", "--secure-port="+port,
		"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none", // may not be the loopback
		"--authorization-mode=RBAC", "--allow-privileged",
		"--disable-admission-plugins=ServiceAccount",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--client-ca-file="+c.file("ca.crt"), "--cert-dir="+filepath.Join(dir, "certs"),
		"--tls-cert-file="+c.file("apiserver.crt"), "--tls-private-key-file="+c.file("apiserver.key"),
		"--service-account-issuer=https://127.0.0.1", "--service-account-key-file="+c.file("sa.key"),
		"--service-account-signing-key-file="+c.file("sa.key"))
	if err != nil {
		return err
	}
	i.family = append(i.family, server)
	return machine.WaitReady(ctx, i.family, "https://"+i.address+"/readyz", i.client)
}

func (i *instance) startEtcd(ctx context.Context, dir, program string) (url string, err error) {
	client, err := machine.FreeAddress()
	if err != nil {
		return "", err
	}
	peer, err := machine.FreeAddress()
	if err != nil {
		return "", err
	}
	url = "http://" + client
	etcd, err := machine.Start(dir, "etcd", program, "--data-dir="+filepath.Join(dir, "etcd"), "--name=bench",
		"--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls=http://"+peer, "--initial-advertise-peer-urls=http://"+peer,
		"--initial-cluster=bench=http://"+peer, "--log-level=warn")
	if err != nil {
		return "", err
	}
	i.family = append(i.family, etcd)
	return url, machine.WaitReady(ctx, i.family, url+"/readyz", nil)
}

// peerPrograms are the files of the peers.
type peerPrograms struct {
	apiserver, etcd string
}

// versions tells what was built, from the programs themselves.
func (p peerPrograms) versions() (string, error) {
	var found [2]string
	for i, file := range []string{p.apiserver, p.etcd} {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return "", err
		}
		found[i] = info.Main.Version[1:] + " (" + info.GoVersion + ")"
	}
	return fmt.Sprintf("kube-apiserver %s, etcd %s", found[0], found[1]), nil
}
