#!/bin/sh
# NVMe over siw inside one host: the kernel's target and the kernel's initiator over the interface lo, whose traffic is recorded
# into FILE. A few writes and reads, and the data compared.   nvme.sh FILE
set -e
file=$1
nqn=iwarp-fixture
address=$(ip -4 -o addr show dev vec0 | sed "s/.*inet \([^/]*\).*/\1/")
ip link set lo mtu 1500
tcpdump -i lo -s 0 -U -Z root -n -w "$file" tcp port 4420 2>/run/tcpdump.err &
recorder=$!
until grep -q listening /run/tcpdump.err; do sleep 0.05; done
mount -t configfs configfs /sys/kernel/config
cd /sys/kernel/config/nvmet
mkdir "subsystems/$nqn" "subsystems/$nqn/namespaces/1" ports/1
echo 1 >"subsystems/$nqn/attr_allow_any_host"
printf /dev/ram0 >"subsystems/$nqn/namespaces/1/device_path"
echo 1 >"subsystems/$nqn/namespaces/1/enable"
echo rdma >ports/1/addr_trtype
echo ipv4 >ports/1/addr_adrfam
echo "$address" >ports/1/addr_traddr
echo 4420 >ports/1/addr_trsvcid
ln -s "$PWD/subsystems/$nqn" "ports/1/subsystems/$nqn"
printf 'nqn=%s,transport=rdma,traddr=%s,trsvcid=4420,nr_io_queues=1,queue_size=16,hostnqn=iwarp-fixture-host' "$nqn" "$address" >/dev/nvme-fabrics
until [ -b /dev/nvme0n1 ]; do sleep 0.05; done
seq 1 5000 | head -c 16384 >/run/data
dd if=/run/data of=/dev/nvme0n1 bs=4096 oflag=direct 2>/dev/null
dd if=/dev/nvme0n1 of=/run/back bs=8192 count=2 iflag=direct 2>/dev/null
cmp /run/data /run/back
echo 1 >/sys/class/nvme/nvme0/delete_controller
sleep 0.5
kill "$recorder"
wait "$recorder" || true
echo "same data"
