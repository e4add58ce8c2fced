package process

import (
	"bufio"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/even-keel/evenkeel/node"
)

// memoryReserve is how much memory is to be free, as the kubelet has it. Of disks, it
// is a tenth, but no more than diskReserve: machines of developers are often full.
const (
	memoryReserve = 100 << 20
	diskReserve   = 1 << 30
)

// Machine tells of this machine.
func (r *Runtime) Machine(name string) node.Machine {
	total, free := memory()
	m := node.Machine{
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(total, resource.BinarySI),
			corev1.ResourcePods:   *resource.NewQuantity(r.options.MaxPods, resource.DecimalSI),
		},
		Info: corev1.NodeSystemInfo{
			MachineID: firstLine("/etc/machine-id"), BootID: firstLine("/proc/sys/kernel/random/boot_id"),
			KernelVersion: firstLine("/proc/sys/kernel/osrelease"), OSImage: osImage(),
			OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
			KubeletVersion: r.options.Version, ContainerRuntimeVersion: "process://1",
		},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: r.options.Address},
			{Type: corev1.NodeHostName, Address: name},
		},
		MemoryPressure: free < memoryReserve,
		Port:           r.options.Port,
	}
	if size, left := disk(r.options.Folder); size > 0 {
		m.Capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(size, resource.BinarySI)
		m.DiskPressure = left < min(size/10, diskReserve)
	}
	m.Allocatable = m.Capacity
	if _, err := os.Stat(r.podsFolder()); err != nil {
		m.NotReady = "the folder of the pods cannot be used: " + err.Error()
	}
	return m
}

// firstLine is that of a file, "" if there is none.
func firstLine(path string) string {
	data, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}

// osImage is how the system calls itself.
func osImage() string {
	f, err := os.Open("/etc/os-release")
	if err != nil {
		return runtime.GOOS
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if v, is := strings.CutPrefix(lines.Text(), "PRETTY_NAME="); is {
			return strings.Trim(v, `"`)
		}
	}
	return runtime.GOOS
}

// memory is how much there is, and how much is free. Where the system does not tell,
// it is taken to be enough.
func memory() (total, free int64) {
	total, free = 8<<30, 8<<30
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return total, free
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		kB, err := strconv.ParseInt(fields[1], 10, 64)
		switch {
		case err != nil:
		case fields[0] == "MemTotal:":
			total = kB << 10
		case fields[0] == "MemAvailable:":
			free = kB << 10
		}
	}
	return total, free
}

// ownAddress is the first address by which others may reach the machine.
func ownAddress() string {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}
